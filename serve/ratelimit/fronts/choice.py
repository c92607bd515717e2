"""The choice of a front: the class that listens for gRPC.

The native one is an order of magnitude faster, the grpcio one can do everything a gRPC server can.
Which of them the settings ask for, they say themselves (`Settings.grpc_front`).
"""

from tollgate.serve.ratelimit.fronts.front import Front, ListenAddress, Service
from tollgate.serve.ratelimit.fronts.grpcio import GrpcioFront
from tollgate.serve.ratelimit.fronts.native import NativeFront, NativeTuning
from tollgate.serve.settings.choices import GrpcFront


def make_front(
    choice: GrpcFront, listen: ListenAddress, service: Service, tuning: NativeTuning
) -> Front:
    """The front of that name. `tuning` is for the native one alone."""
    assert choice is not GrpcFront.AUTO, "the settings have decided"
    if choice is GrpcFront.GRPCIO:
        return GrpcioFront(listen, service)
    return NativeFront(listen, service, tuning)
