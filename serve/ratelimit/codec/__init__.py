"""The wire forms of a rate-limit question and its answer: protobuf and proto3 JSON."""
