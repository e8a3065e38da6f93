package zamokgoredis

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/zamok-go/zamok/driver"
)

// result turns what a command has become into what a driver returns.
func result(cmd *redis.Cmd) (any, error) {
	v, err := cmd.Result()
	if err == redis.Nil {
		return nil, nil
	}
	if err != nil {
		return nil, serverError(err)
	}
	return reply(v)
}

// serverError makes a *driver.ServerError of what the server said. The library
// has several types for that, which have one method in common, and may wrap
// them.
func serverError(err error) error {
	var se redis.Error
	if errors.As(err, &se) {
		return &driver.ServerError{Text: se.Error()}
	}
	return err
}

// reply turns the types of RESP3 into those that RESP2 would have sent. An
// error within an array fails the whole: no script of ours returns one, and a
// string of its text could be taken for data.
func reply(v any) (any, error) {
	switch v := v.(type) {
	case nil, int64, string:
		return v, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case *big.Int:
		return v.String(), nil
	case error:
		return nil, serverError(v)
	case []any:
		return list(v)
	case map[any]any:
		flat := make([]any, 0, 2*len(v))
		for key, value := range v {
			flat = append(flat, key, value)
		}
		return list(flat)
	}
	return nil, fmt.Errorf("zamokgoredis: a reply of type %T", v)
}

// list works in place: the slice is the command's, and nobody else reads it.
func list(vs []any) (any, error) {
	for i, v := range vs {
		r, err := reply(v)
		if err != nil {
			return nil, err
		}
		vs[i] = r
	}
	return vs, nil
}
