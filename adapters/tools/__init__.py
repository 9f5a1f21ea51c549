"""What runs tasks: Python functions on the loop, in threads and in processes, and what they may know and raise.

Worker processes import this package on their way up, so nothing heavy is imported here: the workplaces themselves
are in `understudy.adapters.tools.workplaces`.
"""

from understudy.adapters.tools.context import TaskContext, current_task
from understudy.adapters.tools.failures import PermanentError, TransientError

__all__ = ["PermanentError", "TaskContext", "TransientError", "current_task"]
