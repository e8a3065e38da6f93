package locker

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// onGoRedis is a client of go-redis on its default options.
func onGoRedis(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

// goRedisScripts calls scripts on go-redis.
type goRedisScripts struct {
	client *redis.Client
	feeds  []*redis.PubSub
}

func (g *goRedisScripts) script(source string) runScript {
	s := redis.NewScript(source)
	return func(ctx context.Context, keys, args []string) (string, string, error) {
		boxed := make([]any, len(args)) // as the library wants them
		for i, a := range args {
			boxed[i] = a
		}
		reply, err := s.Run(ctx, g.client, keys, boxed...).Slice()
		if err != nil || len(reply) < 2 {
			return "", "", err
		}
		status, _ := reply[0].(string)
		fence, _ := reply[1].(string)
		return status, fence, nil
	}
}

func (g *goRedisScripts) subscribe(ctx context.Context, channel string, handle func(payload string)) error {
	feed := g.client.Subscribe(ctx, channel)
	if _, err := feed.Receive(ctx); err != nil { // the server has confirmed it
		_ = feed.Close()
		return err
	}
	g.feeds = append(g.feeds, feed)
	go func() { // until Close
		for m := range feed.Channel() {
			handle(m.Payload)
		}
	}()
	return nil
}

func (g *goRedisScripts) close() {
	for _, f := range g.feeds {
		_ = f.Close()
	}
	_ = g.client.Close()
}
