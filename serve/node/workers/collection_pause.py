"""From here on no garbage is collected, until the origin of workers (`origin.py`) has set aside
what is there: nothing that a process imports is garbage, and to look for it again and again takes a
tenth of its imports' time. Import this before whatever is large.
"""

import gc

gc.disable()
