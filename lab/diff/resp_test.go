package diff

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zamok-go/zamok/driver"
)

// conn is one connection that speaks RESP3, in which messages come between the
// replies of the same connection: so it is certain when all that an operation
// published has been read.
type conn struct {
	net.Conn
	r   *bufio.Reader
	out []byte
}

// push is something that the server sent unasked.
type push []any

func dial(addr string) (*conn, error) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, r: bufio.NewReader(nc)}
	c.add("HELLO", "3")
	if err := c.flush(); err != nil {
		return nil, err
	}
	_, err = c.read()
	return c, err
}

// add puts a command into the next pipeline.
func (c *conn) add(args ...string) {
	c.out = fmt.Appendf(c.out, "*%d\r\n", len(args))
	for _, a := range args {
		c.out = fmt.Appendf(c.out, "$%d\r\n%s\r\n", len(a), a)
	}
}

func (c *conn) flush() error {
	c.SetDeadline(time.Now().Add(10 * time.Second))
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// read returns nil, an int64, a string, []any, push, or *driver.ServerError.
func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '+', ',':
		return text, nil
	case '-':
		return &driver.ServerError{Text: text}, nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '_':
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("not understood: %q", line)
	}
	switch kind {
	case '$', '=':
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return string(b[:n]), err
	case '*', '~', '>', '%':
		if kind == '%' {
			n *= 2
		}
		list := make([]any, n)
		for i := range list {
			if list[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		if kind == '>' {
			return push(list), nil
		}
		return list, nil
	}
	return nil, fmt.Errorf("not understood: %q", line)
}
