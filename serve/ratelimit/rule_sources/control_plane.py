"""The stream of a control plane (B20, xDS): a thread that connects, listens and answers.

    connect --stream opened--> subscribed --set of rules--> judged --ACK, NACK--> subscribed
    any --stream ended, or none opened--> pause --> connect, anew

A thread of its own, and grpcio's ordinary calls: it is this thread that waits for a control plane
that says nothing, and never the event loop of the actor. Each try has a new channel, so names are
looked up and certificates read anew. What came is judged before the next message is read, so one is
held at a time; its size is bounded by gRPC, and compressed ones, whose size is known too late, are
not asked for, and refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Lock, Thread, current_thread
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from tollgate.actors.ratelimit.rules.rule_file import RuleFile, RuleFileError
from tollgate.actors.ratelimit.watching.subscription import Absence, Subscribe, Subscription
from tollgate.serve.net.tls_files import TlsError, check_authority, check_pair, read_file
from tollgate.serve.ratelimit.rule_sources.resource_messages import (
    RESOURCE_TYPE_URL,
    STREAM_METHOD,
    DiscoveryRequest,
    DiscoveryResponse,
)
from tollgate.serve.ratelimit.rule_sources.resources import response_files
from tollgate.serve.settings.outside.control_plane import MESSAGE_BYTES_MAX, ControlPlaneSettings

# A connection that is cut without a word is noticed after this. Servers in Go take pings that come
# more often than every five minutes for an attack.
KEEPALIVE_EVERY_S = 310
KEEPALIVE_ANSWER_WITHIN_S = 20
IDENTITY_ONLY = 1
# By words in the text that gRPC has for a failure: what an operator would rather hear.
_REFUSED = "it closed the connection, as one does that does not take our certificate"
_CLOSED = ("Socket closed", "Connection reset", "Broken pipe")
TLS_HINTS = {
    "WRONG_VERSION_NUMBER": "it speaks no TLS",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is of no CA that we trust",
    "Hostname Verification": "its certificate has another name",
    **dict.fromkeys(("_ALERT_", *_CLOSED), _REFUSED),
    "handshake failed": "there was no TLS handshake",
}
PLAIN_HINTS = dict.fromkeys(_CLOSED, "it closed the connection, as one does that wants TLS")
SIZE_HINTS = {"message larger than max": "see XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES"}
# For a question asked once.
ANSWER_WITHIN_S = 20.0
INVALID_ARGUMENT = grpc.StatusCode.INVALID_ARGUMENT.value[0]


class Pauses:
    """The pauses after streams that ended. `draw`: a number from 0 to 1, at random."""

    def __init__(self, settings: ControlPlaneSettings, draw: Callable[[], float]) -> None:
        self._settings = settings
        self._draw = draw
        self._grown_s = settings.pause_min_s

    def begin_anew(self) -> None:
        """After rules were taken."""
        self._grown_s = self._settings.pause_min_s

    def next_s(self) -> float:
        """The pause before the next try: from the shortest on, longer each time, up to a bound."""
        shortest_s, longest_s = self._settings.pause_min_s, self._settings.pause_max_s
        grown_s = self._grown_s
        self._grown_s = min(max(grown_s * self._settings.pause_growth, shortest_s), longest_s)
        if self._settings.has_jitter:
            grown_s = shortest_s + (grown_s - shortest_s) * self._draw()
        return min(grown_s, longest_s)


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a try."""

    absence: Absence
    reason: str


class ControlPlane:
    """Keeps a subscription supplied until it is stopped."""

    def __init__(
        self, settings: ControlPlaneSettings, subscription: Subscription, draw: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._subscription = subscription
        self._pauses = Pauses(settings, draw)
        self._is_stopped = Event()
        self._call: Any = None
        self._thread = Thread(target=self._run, name="control-plane", daemon=True)

    def start(self) -> None:
        """Connect, and go on for ever."""
        self._thread.start()

    def stop(self) -> None:
        """End the stream and the thread."""
        self._is_stopped.set()
        if (call := self._call) is not None:
            call.cancel()
        self._thread.join()

    def _run(self) -> None:
        self._subscription.served_by(current_thread())
        while not self._is_stopped.is_set():
            ended = self._stream()
            self._subscription.lost(ended.absence, ended.reason)
            has_connected = ended.absence is Absence.STREAM
            pause_s = self._pauses.next_s() if has_connected else self._settings.retry_s
            self._is_stopped.wait(pause_s)
        self._subscription.served_by(None)

    def _stream(self) -> Ended:
        """One connection with its stream, to the end of it."""
        try:
            channel = open_channel(self._settings)
        except TlsError as error:
            return Ended(Absence.TLS, str(error))
        connection = _Connection(self._subscription.opened)
        with channel:
            connection.watch(channel)
            reason = self._conversation(channel, connection)
            has_connected = connection.end()
        if has_connected:
            return Ended(Absence.STREAM, f"{_hint(SIZE_HINTS, reason)}{reason}")
        hint = _hint(TLS_HINTS if self._settings.has_tls else PLAIN_HINTS, reason)
        absence = Absence.TLS if self._settings.has_tls and hint else Absence.CONNECTION
        return Ended(absence, f"{hint}{reason}")

    def _conversation(self, channel: grpc.Channel, connection: "_Connection") -> str:
        """Asks, and answers all that comes; the reason why it ended."""
        messages: SimpleQueue[bytes | None] = SimpleQueue()
        messages.put(_written(self._subscription.first_message(), node=self._settings))
        stream = channel.stream_stream(STREAM_METHOD, _as_it_is, _as_it_is)
        call: Any = stream(iter(messages.get, None), metadata=self._settings.headers)
        self._call = call
        try:
            if self._is_stopped.is_set():  # before there was a call to cancel
                return "stopped"
            for content in call:
                connection.note()
                messages.put(self._answered(content))
        except grpc.RpcError:
            return f"{call.code().name}: {call.details()}"
        except DecodeError:
            return "sent what is no DiscoveryResponse"
        finally:
            call.cancel()
            messages.put(None)
        return "no error was given"

    def _answered(self, content: bytes) -> bytes:
        """The answer to a response. DecodeError when it is none."""
        response = DiscoveryResponse.FromString(content)
        resources: list[RuleFile] | RuleFileError
        try:
            resources = response_files(response)
        except RuleFileError as error:
            resources = error
        answer = self._subscription.offered(response.version_info, response.nonce, resources)
        if not answer.error:
            self._pauses.begin_anew()
        return _written(answer)


def _hint(hints: Mapping[str, str], reason: str) -> str:
    """The hint for a failure, to stand before the reason; empty when there is none."""
    return next((f"{hint}: " for words, hint in hints.items() if words in reason), "")


def _as_it_is(content: bytes) -> bytes:
    """In the place of a codec: what gRPC cannot decode would end the stream without an answer."""
    return content


class NothingSentError(Exception):
    """A control plane that sent no rules when it was asked; the text says why."""


def sent_once(settings: ControlPlaneSettings) -> list[RuleFile]:
    """The resources that the control plane sends first; nothing is said of what becomes of them.
    NothingSentError, or RuleFileError for what cannot be decoded."""
    try:
        channel = open_channel(settings)
    except TlsError as error:
        raise NothingSentError(str(error)) from None
    messages: SimpleQueue[bytes | None] = SimpleQueue()
    messages.put(_written(Subscribe(""), node=settings))
    with channel:
        stream = channel.stream_stream(STREAM_METHOD, _as_it_is, _as_it_is)
        call: Any = stream(
            iter(messages.get, None), metadata=settings.headers, timeout=ANSWER_WITHIN_S
        )
        try:
            content = next(call, None)
            if content is None:
                raise NothingSentError("it ended the stream without an answer")
            response = DiscoveryResponse.FromString(content)
        except grpc.RpcError:
            reason = f"{call.code().name}: {call.details()}"
            hints = TLS_HINTS if settings.has_tls else PLAIN_HINTS
            raise NothingSentError(f"{_hint(hints | SIZE_HINTS, reason)}{reason}") from None
        except DecodeError:
            raise NothingSentError("it sent what is no DiscoveryResponse") from None
        finally:
            call.cancel()
            messages.put(None)
    return response_files(response)


class _Connection:
    """Tells when a channel is connected: gRPC says so in a thread of its own, and at times late."""

    def __init__(self, opened: Callable[[], None]) -> None:
        self._opened = opened
        self._lock = Lock()
        self._has_connected = False
        self._is_over = False

    def watch(self, channel: grpc.Channel) -> None:
        """Notes it when the channel is connected."""

        def notice(state: grpc.ChannelConnectivity) -> None:
            if state is not grpc.ChannelConnectivity.READY:
                return
            self.note()
            channel.unsubscribe(notice)  # whoever listens on is woken five times a second

        channel.subscribe(notice)

    def note(self) -> None:
        """Calls `opened`, the first time."""
        with self._lock:
            if not self._has_connected and not self._is_over:
                self._has_connected = True
                self._opened()

    def end(self) -> bool:
        """True if it was connected. From now on nothing is told."""
        with self._lock:
            self._is_over = True
            return self._has_connected


def _written(message: Subscribe, node: ControlPlaneSettings | None = None) -> bytes:
    """A DiscoveryRequest. `node`: whose it is, which the first one of a stream tells."""
    request = DiscoveryRequest(
        version_info=message.version, type_url=RESOURCE_TYPE_URL, response_nonce=message.nonce
    )
    if node is not None:
        request.node.id = node.node_id
        request.node.metadata.update(dict(node.node_metadata))
    if message.error:
        request.error_detail.code = INVALID_ARGUMENT
        request.error_detail.message = message.error
    content: bytes = request.SerializeToString()
    return content


def open_channel(settings: ControlPlaneSettings) -> grpc.Channel:
    """A channel to the control plane, not yet connected. TlsError for files that cannot serve."""
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", settings.message_bytes_max or MESSAGE_BYTES_MAX),
        ("grpc.compression_enabled_algorithms_bitset", IDENTITY_ONLY),
        ("grpc.keepalive_time_ms", KEEPALIVE_EVERY_S * 1_000),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_ANSWER_WITHIN_S * 1_000),
        ("grpc.http2.max_pings_without_data", 0),
        # (by itself a minute for any ping, and what keepalive says is not heeded)
        ("grpc.http2.ping_timeout_ms", KEEPALIVE_ANSWER_WITHIN_S * 1_000),
        # A connection of this channel's own: others would keep the pauses of the last one.
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if not settings.has_tls:
        return grpc.insecure_channel(settings.target, options)
    if settings.server_san:
        options.append(("grpc.ssl_target_name_override", settings.server_san))
    return grpc.secure_channel(settings.target, channel_credentials(settings), options)


def channel_credentials(settings: ControlPlaneSettings) -> grpc.ChannelCredentials:
    """What we show and whom we trust, read now. TlsError for files that cannot serve."""
    authority = certificate = key = None
    if settings.server_ca:
        authority = read_file(settings.server_ca)
        check_authority(settings.server_ca, authority, "the control plane's CA")
    if settings.cert:
        certificate, key = read_file(settings.cert), read_file(settings.key)
        check_pair(settings.cert, settings.key)
    return grpc.ssl_channel_credentials(authority, key, certificate)
