/**
 * Where a submission stands on its way to the service:
 *
 * - `connecting`: it is not sent yet, for the realtime connection does not stand;
 * - `sending`: it was sent, and nothing has been answered;
 * - `busy`: the conversation is being cleared, and it is sent again later;
 * - `unanswered`: no answer came, and the service is asked what became of it;
 * - `committed`, `reserved`, `absent`, `unknown`: what the service said to that (specification 3.4). After `absent` it is sent again with the same IDs,
 *   as long as that is allowed; after `unknown` it never is.
 * - `accepted`: the service has it.
 */
export type SubmissionState =
  | "connecting"
  | "sending"
  | "busy"
  | "unanswered"
  | "committed"
  | "reserved"
  | "absent"
  | "unknown"
  | "accepted";
