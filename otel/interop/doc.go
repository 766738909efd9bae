// Package interop tests package otelheadway with what it meets in a program: the
// OTLP exporters, against a receiver that decodes what they send, and otelhttp
// around and inside. It is a module of its own, so that users do not get its
// requirements.
package interop
