import {
  accessErrors,
  defineContract,
  defineErrors,
  maxCharacters,
  pageEnvelope,
  readParameters,
  reply,
} from "@portico/core/contract";
import * as v from "valibot";

/** Errors of the calls about accounts of tools. */
export const toolAccountErrors = {
  ...accessErrors,
  ...defineErrors({
    owner_required: { status: 403, message: "Only the owner may connect an account of the instance" },
    user_required: { status: 403, message: "This token has no user, whose account could be connected" },
    unknown_source: { status: 404, message: "No source of tools with this id uses an account" },
    redirect_not_allowed: { status: 400, message: "redirectUrl must be a page of this service, or of an allowed origin" },
    state_invalid: { status: 400, message: "The state is unknown, used, expired, or of another user" },
    authorization_refused: { status: 409, message: "The person or the service refused" },
    authorization_unreachable: { status: 502, message: "The service, or its description of OAuth, cannot be reached or read" },
    authorization_address_refused: {
      status: 502,
      message: "The description of OAuth leads to an address that may not be called",
    },
    authorization_unsupported: { status: 502, message: "The service lacks PKCE with S256, or the registration of clients" },
    registration_refused: { status: 502, message: "The service refused to register this client" },
  }),
};

const LONGEST = 2048;
const text = v.string();
const short = v.pipe(text, v.nonEmpty(), maxCharacters(LONGEST));
const path = v.strictObject({ sourceId: text });
const { unauthorized, owner_required, user_required, unknown_source, redirect_not_allowed, ...ofService } = toolAccountErrors;
const { state_invalid, authorization_refused, ...ofDiscovery } = ofService;
const ofOne = { unauthorized, owner_required, user_required, unknown_source };

const account = v.object({
  /** The source of tools: the name of an MCP server. */
  sourceId: text,
  /** `instance`: one account for all users, which the owner connects. `user`: each user connects their own account. */
  per: v.picklist(["instance", "user"]),
  /** `ended`: the service refused the access, so it must be connected again. */
  state: v.picklist(["connected", "not_connected", "ended"]),
  /** When it was connected, ISO 8601. */
  connectedAt: v.optional(text),
  /** The granted scopes, separated by spaces, if the service names them. */
  scope: v.optional(text),
});

/** Accounts that sources of tools use, for the caller: an extension of the specification. */
export const toolAccountsContract = defineContract(
  { surface: "agent", auth: "instance", envelope: pageEnvelope },
  {
    list: {
      method: "GET",
      path: "/api/tool-accounts",
      summary: "List the accounts of MCP servers, and whether they are connected",
      query: readParameters({}),
      success: reply.json(v.object({ accounts: v.array(account) })),
      errors: accessErrors,
    },
    connect: {
      method: "POST",
      path: "/api/tool-accounts/:sourceId/connect",
      summary: "Begin to connect an account: the person agrees at the address of the answer",
      params: path,
      body: v.strictObject({
        /** The page to which the person returns, with `state`, and `code` or `error`. */
        redirectUrl: short,
      }),
      success: reply.json(
        v.object({
          /** The address at which the person agrees. */
          url: text,
          /** When the state becomes invalid, ISO 8601. */
          expiresAt: text,
        }),
      ),
      errors: { ...ofOne, redirect_not_allowed, ...ofDiscovery },
    },
    finish: {
      method: "POST",
      path: "/api/tool-accounts/:sourceId/finish",
      summary: "Finish with the parameters with which the person returned",
      params: path,
      body: v.strictObject({
        state: short,
        code: v.optional(short),
        iss: v.optional(short),
        error: v.optional(short),
      }),
      success: reply.json(account),
      errors: {
        ...ofOne,
        state_invalid,
        authorization_refused,
        authorization_address_refused: ofService.authorization_address_refused,
      },
    },
    disconnect: {
      method: "DELETE",
      path: "/api/tool-accounts/:sourceId",
      summary: "Forget the access to an account, and ask the service to revoke it",
      params: path,
      success: reply.json(v.object({ /** False if it was not connected. */ disconnected: v.boolean() })),
      errors: ofOne,
    },
  },
);
