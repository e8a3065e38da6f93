//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certs writes an authority's certificate, and one of a server and client that
// it signed, for 127.0.0.1 and redis.example.
func (s *stage) certs(ts *testscript.TestScript, neg bool, args []string) {
	ca, caKey := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, newKey(ts)
	leaf, leafKey := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis.example"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"redis.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, newKey(ts)
	writePEM(ts, "ca.pem", "CERTIFICATE", sign(ts, ca, ca, caKey, caKey))
	writePEM(ts, "cert.pem", "CERTIFICATE", sign(ts, leaf, ca, leafKey, caKey))
	key, err := x509.MarshalPKCS8PrivateKey(leafKey)
	ts.Check(err)
	writePEM(ts, "key.pem", "PRIVATE KEY", key)
	ts.Setenv("TLSPORT", freePort(ts))
}

func newKey(ts *testscript.TestScript) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	return key
}

func sign(ts *testscript.TestScript, cert, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, by)
	ts.Check(err)
	return der
}

func writePEM(ts *testscript.TestScript, name, kind string, der []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
