import { defineContract, defineErrors, maxCharacters, reply } from "@portico/core/contract";
import * as v from "valibot";

/** Characters of a presented code that are looked at. A code has 43. */
const CODE_LENGTH = 200;

/** Bytes of the body with the code. */
const EXCHANGE_BYTES = 4 * 1024;

/** Errors of sign-in links. */
export const signInErrors = defineErrors({
  unauthorized: { status: 401 },
  sign_in_link_invalid: { status: 401, message: "This sign-in link was used, has expired, or is not of this instance" },
  session_required: { status: 403, message: "Only the session of a sign-in link is ended here" },
  instance_token_required: { status: 403, message: "Only the instance access token makes sign-in links" },
  origin_not_allowed: { status: 403, message: "Only the service's own pages may sign in with a link" },
  too_many_attempts: { status: 429, message: "Too many wrong codes: try again in a minute" },
  sign_in_unavailable: { status: 503, message: "The instance cannot open sessions now" },
});

const { unauthorized, sign_in_link_invalid, instance_token_required, session_required } = signInErrors;
const { origin_not_allowed, too_many_attempts, sign_in_unavailable } = signInErrors;

/** Links that sign the instance's owner in to the web console. */
export const signInContract = defineContract(
  { surface: "agent", auth: "instanceToken", envelope: (error) => ({ error: error.code, message: error.message }) },
  {
    issueLink: {
      method: "POST",
      path: "/api/sign-in-links",
      summary: "Make a link that signs in to the web console once; its url is relative to the agent service",
      success: reply.json(v.object({ url: v.string(), expiresAt: v.string() }), 201),
      errors: { unauthorized, instance_token_required },
    },
    signIn: {
      method: "POST",
      path: "/api/sign-in",
      summary: "Exchange the code of a sign-in link for a session of the instance's owner; the code is used up",
      auth: "open",
      body: v.strictObject({ code: v.pipe(v.string(), v.nonEmpty(), maxCharacters(CODE_LENGTH)) }),
      bodyLimit: EXCHANGE_BYTES,
      success: reply.json(v.object({ token: v.string(), expiresAt: v.string() })),
      errors: { sign_in_link_invalid, origin_not_allowed, too_many_attempts, sign_in_unavailable },
    },
    signOut: {
      method: "DELETE",
      path: "/api/session",
      summary: "End the session that is presented, in all processes",
      auth: "session",
      success: reply.empty(),
      errors: { unauthorized, session_required },
    },
  },
);
