"""Sums up the pages, which come as JSON: what each answer was, with its body."""

import json
import sys

if __name__ == "__main__":
    bodies = [page["body"] for page in json.load(sys.stdin)]
    print(f"{sum(body['words'] for body in bodies)} words on {len(bodies)} pages")
