package zamok

// Prefix returns Config.Prefix, for packages that keep keys of their own beside
// the client's locks.
func (c *Client) Prefix() string { return c.cfg.Prefix }
