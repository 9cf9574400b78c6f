/**
 * The state of a submission before the service has accepted it:
 *
 * - `connecting`: not sent yet, because the realtime connection is not established;
 * - `sending`: sent, without an answer so far;
 * - `busy`: the conversation is being cleared, and the client sends the submission again later;
 * - `unanswered`: no answer came, and the client asks the service what happened to the submission;
 * - `committed`, `reserved`, `absent`, `unknown`: the service's answer to that question (specification 3.4). After `absent`, the
 *   client sends the submission again with the same IDs while that is allowed. After `unknown`, the client asks
 *   again. If the answer stays `unknown`, the query ends, and is never sent again.
 * - `accepted`: the service has accepted the submission.
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
