"""From a file, a text or Python to a checked definition."""

from understudy.runtime.definition.builder import Flow, Node, task
from understudy.runtime.definition.loading import load, load_data, load_text

__all__ = ["Flow", "Node", "load", "load_data", "load_text", "task"]
