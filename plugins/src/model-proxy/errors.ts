import { defineErrors } from "@portico/core/contract";

/** All errors of the proxy itself (specification 7.1, open points 2). Upstream errors are relayed, not thrown. */
export const proxyErrors = defineErrors({
  authentication_error: { status: 401, message: "A valid safe token is required, as a bearer token or in x-api-key" },
  missing_model: { status: 400, message: "Missing required field: model" },
  invalid_body: { status: 400, message: "Invalid JSON" },
  invalid_field: { status: 400 },
  model_not_served: { status: 400 },
  provider_unavailable: { status: 400, message: "The provider of this safe token is no longer configured" },
  upload_broken: { status: 400, message: "The request body ended before it was complete" },
  upload_silent: { status: 408, message: "The request body stopped arriving" },
  body_too_large: { status: 413, message: "The request body is larger than 256 MiB" },
  unsupported_media_type: { status: 415, message: "Content-Type must be application/json" },
  unsupported_encoding: {
    status: 415,
    message: "The Content-Encoding of the request is not supported; gzip, deflate, br and zstd are",
  },
  upstream_unreachable: { status: 502 },
  upstream_invalid: { status: 502, message: "The provider sent an invalid answer" },
  upstream_timeout: { status: 504 },
  provider_loop: {
    status: 508,
    message: "The call returned to an instance that it had already passed: a provider's address leads back to its caller",
  },
});

/** Errors of managing safe tokens over the agent service. */
export const managementErrors = defineErrors({
  unauthorized: { status: 401 },
  owner_required: { status: 403 },
  unknown_provider: { status: 400 },
  invalid_request: { status: 400 },
  safe_token_not_found: { status: 404 },
});
