// For HEALTHCHECK: whether the process in this container answers. The probes listen on their own port in every preset.
const { PORTICO_PROBES_PORT: port } = process.env;
const { status } = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(5000) });
process.exit(status === 200 ? 0 : 1);
