"""Send equal requests to both servers, and report and shorten their differences."""

import json
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tests.differential import compare
from tests.differential.compare import Difference
from tests.differential.differences import Exchange, excuse
from tests.differential.exchange import Answer, Connection, Request
from tests.differential.routes import minor_of, route_of
from tests.differential.scene import Act

SHORTENING_MAX = 60
KINDS_MAX = 20


class Server(Protocol):
    """A server that can be emptied."""

    address: str

    def empty(self) -> None:
        """Restart with an empty database that has only the standard names."""


class Side:
    """One server, and a mapping of the uuids that it chose."""

    def __init__(self, server: Server, alter: Callable[[Request, Answer], Answer] | None = None) -> None:
        self.server = server
        self._alter = alter  # changes answers, to test that the change is found
        self._connection: Connection | None = None
        self._chosen: dict[str, str] = {}  # name in the sequence -> uuid on this server

    def empty(self) -> None:
        """Empty the server."""
        self.close()
        self.server.empty()
        self._chosen = {}

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, request: Request) -> Answer:
        """Send a request and return the answer, with the uuids of the sequence."""
        if self._connection is None:
            self._connection = Connection(self.server.address)
        sent = request
        for name, chosen in self._chosen.items():
            body = None if sent.body is None else sent.body.replace(name.encode(), chosen.encode())
            sent = replace(sent, path=sent.path.replace(name, chosen), body=body)
        answer = self._connection.ask(sent)
        self._learn(request, answer)
        for name, chosen in self._chosen.items():
            headers = {key: value.replace(chosen, name) for key, value in answer.headers.items()}
            answer = Answer(
                status=answer.status, headers=headers, body=answer.body.replace(chosen.encode(), name.encode())
            )
        return self._alter(request, answer) if self._alter else answer

    def _learn(self, request: Request, answer: Answer) -> None:
        """Map a uuid that the server chose to a name that is equal for both servers."""
        found = re.search(r"/resource_providers/([0-9a-f-]{36})$", answer.headers.get("location", ""))
        body = (request.body or b"").decode(errors="replace")
        if request.method == "POST" and found and found[1].replace("-", "") not in body.replace("-", "").lower():
            self._chosen[str(uuid.uuid5(uuid.NAMESPACE_URL, body))] = found[1]


@dataclass
class Tally:
    """Counts of the requests and their results."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # route, status of the reference
    versions: set[tuple[str, int]] = field(default_factory=set)  # route, minor version
    excused: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        self.requests += other.requests
        self.versions |= other.versions
        self.excused += other.excused

    @property
    def exchanges(self) -> int:
        """The number of requests."""
        return sum(self.requests.values())

    @property
    def good(self) -> int:
        """The number of requests that succeeded on the reference."""
        return sum(count for (_, status), count in self.requests.items() if status < 300)

    def text(self) -> str:
        """Return counts by route and status, the share of successes, and the intended differences."""
        statuses = Counter[int]()
        routes: dict[str, dict[int, int]] = {}
        for (route, status), count in sorted(self.requests.items()):
            statuses[status] += count
            routes.setdefault(route, {})[status] = count
        lines = [
            f"{route:58} " + "  ".join(f"{status}: {count}" for status, count in each.items())
            for route, each in routes.items()
        ]
        lines.append(
            f"{self.exchanges} exchanges, {self.good / max(1, self.exchanges):.0%} successes; "
            + "  ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
        )
        lines.append(
            "intended differences: "
            + (", ".join(f"{name} {count}" for name, count in sorted(self.excused.items())) or "none")
        )
        return "\n".join(lines)


@dataclass
class Fault:
    """An exchange with a difference that is not intended."""

    step: int
    exchange: Exchange

    @property
    def kind(self) -> tuple[str, ...]:
        """The route, statuses and places; faults of one kind count as one."""
        route = route_of(self.exchange.request.method, self.exchange.request.path)
        places = sorted({re.sub(r"[0-9a-f-]{36}| \(of .*", "*", each.place) for each in self.exchange.found})
        return (route, str(self.exchange.reference.status), str(self.exchange.subject.status), *places)


@dataclass
class Outcome:
    """The outcome of one sequence."""

    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    @property
    def kinds(self) -> set[tuple[str, ...]]:
        """The kinds of its faults."""
        return {fault.kind for fault in self.faults}


class Duel:
    """Two servers that should give equal answers."""

    def __init__(self, reference: Side, subject: Side) -> None:
        self.reference = reference
        self.subject = subject

    def run(self, act: Act) -> Outcome:
        """Send a sequence to both servers, which start empty; stop early if their data may differ."""
        self._empty()
        outcome = Outcome()
        try:
            request = next(act)
            while True:
                outcome.requests.append(request)
                exchange, rule = self.ask(request)
                _count(outcome.tally, exchange, rule)
                if exchange.found and rule is None:
                    outcome.faults.append(Fault(len(outcome.requests) - 1, exchange))
                    if _may_diverge(exchange) or len(outcome.kinds) >= KINDS_MAX:
                        act.close()
                        break
                request = act.send(exchange.reference)
        except StopIteration:
            pass
        return outcome

    def ask(self, request: Request) -> tuple[Exchange, str | None]:
        """Send a request to both servers; return the exchange and the name of the rule that excuses it."""
        answers = self.reference.ask(request), self.subject.ask(request)
        limit = compare.limit_of(request)
        if limit is not None and answers[0].status == answers[1].status == 200:
            return self._limited(request, answers, limit)
        return self._judge(request, answers, compare.differences(*answers))

    def shorten(self, requests: list[Request], fault: Fault) -> list[Request]:
        """Remove requests while the last one still shows the same fault from empty servers; return the rest."""
        kept, last = requests[: fault.step], requests[fault.step]
        tries, size = 0, max(1, len(kept))
        while size and tries < SHORTENING_MAX:
            start = 0
            while start < len(kept) and tries < SHORTENING_MAX:
                tries += 1
                fewer = kept[:start] + kept[start + size :]
                if self._differs([*fewer, last], fault):
                    kept = fewer
                else:
                    start += size
            size //= 2
        return [*kept, last]

    def close(self) -> None:
        """Close both connections."""
        self.reference.close()
        self.subject.close()

    def _empty(self) -> None:
        self.reference.empty()
        self.subject.empty()

    def _differs(self, requests: Iterable[Request], fault: Fault) -> bool:
        self._empty()
        exchange, rule = None, None
        for request in requests:
            exchange, rule = self.ask(request)
        return exchange is not None and bool(exchange.found) and rule is None and Fault(0, exchange).kind == fault.kind

    def _limited(self, request: Request, answers: tuple[Answer, Answer], limit: int) -> tuple[Exchange, str | None]:
        """Judge the unlimited answers as usual; the limited answers must be subsets of the reference's.

        If the unlimited answers have an intended difference, the subject's must be a subset of its own.
        """
        whole, rule = self.ask(compare.without_limit(request))
        if (whole.found and rule is None) or whole.subject.status != 200:
            return whole, rule
        found = [each for each in compare.differences(*answers) if each.place.startswith("header")]
        if not whole.found:
            found += compare.limited(answers[0], whole.reference, limit, "reference")
        found += compare.limited(answers[1], whole.subject, limit, "subject")
        return self._judge(request, answers, found) if found or not whole.found else (whole, rule)

    def _judge(
        self, request: Request, answers: tuple[Answer, Answer], found: list[Difference]
    ) -> tuple[Exchange, str | None]:
        exchange = Exchange(request, *answers, found, self.subject.ask)
        rule = excuse(exchange) if found else None
        if found and rule is None:
            # Search now, before the data changes; without objections the subject is probably right.
            exchange = replace(exchange, found=found + exchange.objections)
        return exchange, None if rule is None else rule.name


def story(fault: Fault, address: str) -> str:
    """Return a readable report of a fault: the request as a command, both answers, and their differences."""
    request, sides = fault.exchange.request, (fault.exchange.reference, fault.exchange.subject)
    lines = [f"step {fault.step}: {request.as_curl(address)}"]
    for name, answer in zip(("reference", "subject  "), sides, strict=True):
        lines.append(f"  {name}  {answer.status} {_interesting(answer)} {_body(answer)}")
    return "\n".join(lines + [f"  differs in {each}" for each in fault.exchange.found])


def _count(tally: Tally, exchange: Exchange, rule: str | None) -> None:
    request = exchange.request
    route = route_of(request.method, request.path)
    tally.requests[route, exchange.reference.status] += 1
    minor = minor_of(request.header("openstack-api-version"))
    if minor is not None:
        tally.versions.add((route, minor))
    if rule is not None:
        tally.excused[rule] += 1


def _may_diverge(exchange: Exchange) -> bool:
    """Return whether the servers' data may differ from now on, because only one of them wrote."""
    is_written = [answer.status < 300 for answer in (exchange.reference, exchange.subject)]
    return exchange.request.method not in {"GET", "HEAD", "OPTIONS"} and is_written[0] != is_written[1]


def _interesting(answer: Answer) -> str:
    names = (*compare.COMPARED, "allow", "last-modified")
    return json.dumps({name: answer.headers[name] for name in names if name in answer.headers})


def _body(answer: Answer) -> str:
    text = answer.body.decode("utf-8", "backslashreplace")
    return text if len(text) < 3000 else f"{text[:3000]}… ({len(text)} characters)"
