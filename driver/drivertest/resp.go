package drivertest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// The Redis protocol, as far as a test needs it: requests are read into their
// arguments, replies into one frame each. Raw bytes are kept, because a proxy
// must pass on exactly what it received.

// readFrame reads one reply of RESP2 or RESP3 and returns its bytes.
func readFrame(r *bufio.Reader) ([]byte, error) {
	var buf bytes.Buffer
	err := copyFrame(r, &buf)
	return buf.Bytes(), err
}

func copyFrame(r *bufio.Reader, buf *bytes.Buffer) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	buf.Write(line)
	switch line[0] {
	case '$', '=', '!':
		n, err := frameLen(line)
		if err != nil || n < 0 {
			return err
		}
		_, err = io.CopyN(buf, r, int64(n)+2)
		return err
	case '*', '~', '>', '%', '|':
		n, err := frameLen(line)
		if err != nil {
			return err
		}
		switch line[0] {
		case '%':
			n *= 2
		case '|': // attributes stand before the reply that they describe
			n = 2*n + 1
		}
		for range n { // a null array has length -1 and no elements
			if err := copyFrame(r, buf); err != nil {
				return err
			}
		}
		return nil
	case '+', '-', ':', '_', '#', ',', '(':
		return nil
	}
	return fmt.Errorf("drivertest: not a RESP frame: %q", line)
}

func frameLen(line []byte) (int, error) {
	return strconv.Atoi(strings.TrimRight(string(line[1:]), "\r\n"))
}

// parseFrame turns a frame into nil, int64, string, *driver.ServerError or
// []any. Maps and sets become flat []any; numbers that are not integers become
// their text.
func parseFrame(r *bufio.Reader) (any, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(line[1:]), "\r\n")
	switch line[0] {
	case '+', ',', '(':
		return text, nil
	case '-':
		return &driver.ServerError{Text: text}, nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '_':
		return nil, nil
	case '#':
		return map[string]int64{"t": 1, "f": 0}[text], nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return nil, err
	}
	if strings.IndexByte("$=!", line[0]) >= 0 {
		return parseBulk(r, line[0], n)
	}
	if line[0] == '%' {
		n *= 2
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = parseFrame(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func parseBulk(r *bufio.Reader, kind byte, n int) (any, error) {
	body := make([]byte, n+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	text := string(body[:n])
	switch kind {
	case '!':
		return &driver.ServerError{Text: text}, nil
	case '=': // verbatim: three letters of format and a colon come first
		return text[4:], nil
	}
	return text, nil
}

// readRequest reads one command: an array of bulk strings, or an inline line.
func readRequest(r *bufio.Reader) (args []string, raw []byte, err error) {
	first, err := r.Peek(1)
	if err != nil {
		return nil, nil, err
	}
	if first[0] != '*' {
		raw, err = r.ReadBytes('\n')
		return strings.Fields(string(raw)), raw, err
	}
	if raw, err = readFrame(r); err != nil {
		return nil, nil, err
	}
	v, err := parseFrame(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return nil, nil, err
	}
	list, _ := v.([]any)
	for _, a := range list {
		s, _ := a.(string)
		args = append(args, s)
	}
	return args, raw, nil
}

func appendRequest(b []byte, args []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// rawConn is a connection of the tiny client that Server.Do uses. It speaks
// RESP2 and keeps every step within ioLimit, so that a hung server fails a test
// instead of stopping it.
type rawConn struct {
	net.Conn
	r *bufio.Reader
}

const ioLimit = 10 * time.Second

func dialRaw(addr string) (*rawConn, error) {
	c, err := net.DialTimeout("tcp", addr, ioLimit)
	if err != nil {
		return nil, err
	}
	return &rawConn{Conn: c, r: bufio.NewReader(c)}, nil
}

func (c *rawConn) do(args []string) (any, error) {
	if err := c.SetDeadline(time.Now().Add(ioLimit)); err != nil {
		return nil, err
	}
	if _, err := c.Write(appendRequest(nil, args)); err != nil {
		return nil, err
	}
	return parseFrame(c.r)
}
