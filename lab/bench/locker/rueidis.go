package locker

import (
	"context"

	"github.com/redis/rueidis"
)

// onRueidis is a client of rueidis on its default options.
func onRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
}

// rueidisScripts calls scripts on rueidis.
type rueidisScripts struct {
	client rueidis.Client
	feeds  []rueidis.DedicatedClient
}

func (r *rueidisScripts) script(source string) runScript {
	s := rueidis.NewLuaScript(source)
	return func(ctx context.Context, keys, args []string) (string, string, error) {
		reply, err := s.Exec(ctx, r.client, keys, args).ToArray()
		if err != nil || len(reply) < 2 {
			return "", "", err
		}
		status, err := reply[0].ToString()
		if err != nil {
			return "", "", err
		}
		fence, err := reply[1].ToString()
		return status, fence, err
	}
}

func (r *rueidisScripts) subscribe(ctx context.Context, channel string, handle func(payload string)) error {
	feed, _ := r.client.Dedicate()
	feed.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { handle(m.Message) }})
	r.feeds = append(r.feeds, feed)
	return feed.Do(ctx, feed.B().Subscribe().Channel(channel).Build()).Error()
}

func (r *rueidisScripts) close() {
	for _, f := range r.feeds {
		f.Close()
	}
	r.client.Close()
}
