package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headway-go/headway/limiter"
)

// A client that may call twice per ten seconds, and does not want to wait
// longer than one.
func ExampleNew() {
	l, err := limiter.New(limiter.Limit{N: 2, Per: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for range 3 {
		err := l.Wait(ctx, 1)
		var refused *limiter.Refusal
		if errors.As(err, &refused) {
			fmt.Println("try again in", refused.RetryAfter.Round(time.Second))
			return
		}
		fmt.Println("go")
	}
	// Output:
	// go
	// go
	// try again in 10s
}

func ExamplePerSecond() {
	fmt.Println(limiter.PerSecond(50))
	// Output: 50/1s
}

func ExamplePerMinute() {
	fmt.Println(limiter.PerMinute(1000))
	// Output: 1000/1m
}

func ExamplePerHour() {
	fmt.Println(limiter.PerHour(5000))
	// Output: 5000/1h
}

func ExamplePerDay() {
	fmt.Println(limiter.PerDay(100_000))
	// Output: 100000/24h
}

func ExampleEvery() {
	l, err := limiter.New(limiter.Every(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Allow(1), l.Allow(1), l.Delay(1).Round(time.Minute))
	// Output: true false 1h0m0s
}
