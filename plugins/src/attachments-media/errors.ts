import { defineErrors } from "@portico/core/contract";

/** Every error of this area (specification 7.5). */
export const fileErrors = defineErrors({
  unauthorized: { status: 401 },
  origin_not_allowed: { status: 403 },

  attachment_file_required: { status: 400 },
  attachment_empty: { status: 400 },
  attachment_identity_required: { status: 401 },
  attachment_not_found: { status: 404 },
  attachment_too_large: { status: 413 },
  attachment_limit: { status: 429 },
  attachment_storage_limit: { status: 429 },
  attachment_storage_unavailable: { status: 503 },

  invalid_media_request: { status: 400 },
  media_file_required: { status: 400 },
  media_empty: { status: 400 },
  media_identity_required: { status: 401 },
  invalid_media_signature: { status: 401 },
  media_signature_expired: { status: 401 },
  media_owner_forbidden: { status: 403 },
  media_not_found: { status: 404 },
  media_too_large: { status: 413 },
  media_type_unsupported: { status: 415 },
  range_not_satisfiable: { status: 416 },
  media_internal_error: { status: 500 },
  media_signing_unavailable: { status: 503 },
});
