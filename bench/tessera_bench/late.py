"""Results that are read one step late, as a training loop reads its losses: the device works on while the host waits."""


class Late:
    def __init__(self):
        self.under_way = None

    def push(self, result):
        """Reads the result of the step before; this one stays under way."""
        before, self.under_way = self.under_way, result
        if before is not None:
            before.read()

    def finish(self):
        self.push(None)
