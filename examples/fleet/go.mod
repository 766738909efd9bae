module github.com/headway-go/headway/examples/fleet

go 1.26.0

replace (
	github.com/headway-go/headway => ../..
	github.com/headway-go/headway/store/redis => ../../store/redis
)

require (
	github.com/headway-go/headway v0.0.0-00010101000000-000000000000
	github.com/headway-go/headway/store/redis v0.0.0-00010101000000-000000000000
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/bits-and-blooms/bitset v1.24.4 // indirect
	github.com/failsafe-go/failsafe-go v0.9.8 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
)
