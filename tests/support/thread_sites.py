"""Sites in threads of one process, over real connections with real certificates."""

from __future__ import annotations

import threading

import collabtop as ct


class ThreadSites(ct.SitesTeam):
    """A team that starts its own sites: one thread per site, each with its own connection and certificate."""

    def __init__(self, certs, *, journals=None, min_batch=1, joins=None, **settings):
        self.certs, self.joins = certs, joins or {}
        self.journals, self.min_batch = journals, min_batch
        self.settings = {"wait": 20, "grace": 20, **settings}
        self.tolerates_loss = settings.get("on_lost") == "go-on"
        self.errors = []
        self.threads = []

    def open(self, arms, setup, recorder):
        names = [f"site{number}" for number in range(setup.problem.agents)]
        super().__init__(names, listen="localhost:0", cert=self.certs / "coordinator.pem", **self.settings)
        super().open(arms, setup, recorder)
        self.threads = [threading.Thread(target=self._join, args=[name, arms]) for name in names]
        for thread in self.threads:
            thread.start()

    def close(self):
        super().close()
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive(), "a site did not end"

    def _join(self, name, arms, **more):
        try:
            settings = {
                "journal": self.journals and self.journals / name,
                "give_up": 1,
                "min_batch": self.min_batch,
                "secret": b"",  # so that a run is identical to the local team's
            }
            ct.join(f"localhost:{self.port}", arms, cert=self.certs / f"{name}.pem", **(settings | self.joins | more))
        except Exception as error:
            self.errors.append(error)
