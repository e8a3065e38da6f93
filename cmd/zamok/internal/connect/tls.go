package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS names the files and the server name of a TLS connection. The zero value
// means the system's authorities and no client certificate.
type TLS struct {
	CA         string // PEM; instead of the system's authorities
	Cert, Key  string // PEM, of the client; both or neither
	ServerName string // to be found in the server's certificate. Default: the URL's host
}

// ErrNoTLS says that TLS settings came with a URL without TLS.
var ErrNoTLS = errors.New("the URL is not one of TLS")

func (t TLS) config(target Target) (*tls.Config, error) {
	if !target.TLS {
		if t != (TLS{}) {
			return nil, ErrNoTLS
		}
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read the authority's certificate: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate in PEM form in %s", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a client certificate and its key must be given together")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot use the client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
