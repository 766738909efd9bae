package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headway-go/headway/store"
	"github.com/redis/rueidis"
)

// ErrNewer is the cause of a store.Result.Err: the budget was written by a newer version
// of this module. It stays as it is.
var ErrNewer = store.ErrNewer

// ErrDamaged is the cause of a store.Result.Anew: the value at a budget's key was
// damaged, or not written by this module. If it cannot be moved, ErrDamaged is the
// cause of a store.Result.Err: delete the key, or choose another Prefix.
var ErrDamaged = store.ErrDamaged

// advice says what to do about an error, by the server's code. An error inside the
// script has the code only somewhere in its text.
var advice = []struct{ code, text string }{
	{"NOAUTH", "give the client a username and a password"},
	{"WRONGPASS", "check the client's username and password"},
	{"NOPERM", "let the user run PING, EVAL, EVALSHA, GET, SET, DEL and TIME on the keys that begin with the Prefix"},
	{"OOM", "the server's memory is full: give it more maxmemory"},
	{"READONLY", "it is a replica: connect to the primary, and leave SendToReplicas nil"},
	{"MISCONF", "the server cannot write to its disk"},
	{"CROSSSLOT", "connect to a Cluster without ForceSingleClient"},
	{"MOVED", "connect to a Cluster without ForceSingleClient"},
	{"CLUSTERDOWN", "some slots of the Cluster have no node"},
	{"LOADING", "the server has just started"},
	{"BUSY", "another script blocks the server"},
	{"unknown command", "the server has no scripts: want Redis 6 or later, or Valkey"},
}

// explain adds advice to a server's error.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var refused *rueidis.RedisError
	if errors.As(err, &refused) {
		for _, a := range advice {
			if strings.Contains(refused.Error(), a.code) {
				return fmt.Errorf("redis: %s (%w)", a.text, err)
			}
		}
	}
	return fmt.Errorf("redis: %w", err)
}
