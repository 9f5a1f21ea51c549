"""Speed and memory, measured against peers in the same run: `make bench`, or a part by `make bench ONLY=kernel`."""
