import { headerSecret, type Live, milliseconds, type ports, record, type Secret, settingName } from "@portico/core";
import * as v from "valibot";
import { type CommandCredential, credentialSchema, limitSettings, type ProviderLimits } from "./limit-options.ts";

/** All in milliseconds. */
export interface ProviderTimeouts {
  readonly connectMs: number;
  /** From the last byte of the request to the answer's head. */
  readonly headersMs: number;
  /** Idle timeout within an answer. */
  readonly idleMs: number;
}

/** Timeouts of a provider that no option sets. */
export const DEFAULT_TIMEOUTS: ProviderTimeouts = { connectMs: 10_000, headersMs: 600_000, idleMs: 300_000 };

/** What a Chat Completions provider accepts, if it differs from what its vendor is known to accept (open points 12). */
const dialectSchema = v.strictObject({
  maxTokens: v.optional(
    v.pipe(
      v.picklist(["max_completion_tokens", "max_tokens"]),
      v.description(
        "The field for the maximum answer length. The default of all dialect keys is what the vendor is known to accept.",
      ),
    ),
  ),
  reasoning: v.optional(v.pipe(v.picklist(["effort", "none"]), v.description("`none` sends no `reasoning_effort`."))),
  streamOptions: v.optional(v.pipe(v.boolean(), v.description("Whether `stream_options` asks streams for their usage."))),
  reasoningContent: v.optional(
    v.pipe(
      v.boolean(),
      v.description("Whether reasoning of earlier turns is sent back, as `reasoning_content` and `reasoning_details`."),
    ),
  ),
  reasoningOfCalls: v.optional(
    v.pipe(
      v.picklist(["optional", "required"]),
      v.description("`required`: messages with tool calls have `reasoning_content`, at least an empty one."),
    ),
  ),
  turns: v.optional(
    v.pipe(
      v.picklist(["free", "strict"]),
      v.description("`strict`: one system message at the head, and messages of user and assistant that alternate."),
    ),
  ),
  userAfterTool: v.optional(v.pipe(v.boolean(), v.description("Whether a user's message may follow a tool's."))),
  toolIds: v.optional(
    v.pipe(v.picklist(["any", "nine"]), v.description("`nine`: ids of tool calls are nine letters and digits.")),
  ),
  thoughtSignatures: v.optional(
    v.pipe(v.boolean(), v.description("Whether tool calls need Google's thought signatures, in `extra_content`.")),
  ),
  user: v.optional(v.pipe(v.boolean(), v.description("Whether `user` is sent, which names the end user."))),
});

/** One upstream (open points 1 and 2). It speaks one protocol. */
export const providerSchema = v.strictObject({
  id: v.pipe(settingName(), v.description("Id of the provider. Safe tokens are bound to it.")),
  type: v.optional(
    v.pipe(v.string(), v.nonEmpty(), v.description("The value of `owned_by` in the list of models. Default: the id.")),
  ),
  protocol: v.pipe(v.picklist(["messages", "chat-completions"]), v.description("The wire format that the upstream speaks.")),
  baseUrl: v.pipe(
    v.string(),
    v.check(isBaseUrl, "an http or https address without user name, query and fragment"),
    v.description("The part of the upstream's URLs before `/messages`, `/chat/completions` and `/models`."),
  ),
  credential: v.optional(
    v.pipe(
      credentialSchema,
      v.description(
        'The upstream\'s key, which never leaves the service, or `{ "command": ["PROGRAM", "ARGUMENT"] }`, a program that prints a token. A command may have `forMs` (default 300000), how long a token is used whose output names no end, and `timeoutMs` (default 30000), how long the program may run.',
      ),
    ),
  ),
  models: v.optional(
    v.pipe(
      v.union([v.array(v.pipe(v.string(), v.nonEmpty())), v.literal("discover")]),
      v.description("Names of the served models, or `discover` to read the upstream's own list."),
    ),
    "discover",
  ),
  enabled: v.optional(v.pipe(v.boolean(), v.description("A provider that is not enabled is ignored.")), true),
  headers: v.optional(
    v.pipe(
      // A header may be a credential, so each value may be a secret, and no value is shown.
      record(v.pipe(v.string(), v.regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "a header name")), headerSecret()),
      v.description("Headers that are added to every call to the upstream."),
    ),
    {},
  ),
  timeouts: v.optional(
    v.strictObject({
      connectMs: v.optional(
        v.pipe(milliseconds(1), v.description("Timeout for opening a connection.")),
        DEFAULT_TIMEOUTS.connectMs,
      ),
      headersMs: v.optional(
        v.pipe(milliseconds(1), v.description("Timeout for the head of an answer.")),
        DEFAULT_TIMEOUTS.headersMs,
      ),
      idleMs: v.optional(
        v.pipe(milliseconds(1), v.description("Timeout for silence inside an answer.")),
        DEFAULT_TIMEOUTS.idleMs,
      ),
    }),
    {},
  ),
  dialect: v.optional(dialectSchema),
  ...limitSettings,
});

/** A provider, after parsing. */
export type ProviderSettings = v.InferOutput<typeof providerSchema>;

/** One provider behind HTTP. */
export interface HttpProviderOptions
  extends
    Pick<ProviderSettings, "id" | "baseUrl" | "dialect">,
    Partial<Pick<ProviderLimits, "keyRestMs" | "retry" | "concurrency">> {
  readonly credential?: Secret | CommandCredential | undefined;
  /** Several keys, used in turn, in place of `credential`. */
  readonly keys?: readonly Secret[] | undefined;
  /** The value of `owned_by`. */
  readonly type: string;
  /** Model names, or `"discover"` to read the upstream's own list. */
  readonly models: readonly string[] | "discover";
  /** Sent with every call. They replace the caller's headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The next credential, keys and headers, while the app is open: for the calls that begin later. Calls in progress finish with those
   * that they began with. Undefined keeps the present ones. A credential of another kind than the present one is ignored. Default: they
   * never change.
   */
  readonly rotation?: Live<Pick<HttpProviderOptions, "credential" | "keys" | "headers"> | undefined> | undefined;
  readonly timeouts?: Partial<ProviderTimeouts> | undefined;
  /**
   * Sends the calls, in place of connections of undici: for runtimes without sockets, and for hosts with a `fetch` of their own. Then
   * `connectMs` has no effect, and encoded answers arrive decoded.
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

/** The differences between the two protocols in requests to an upstream. */
export interface UpstreamProtocol {
  readonly protocol: ports.ModelProtocol;
  /** Appended to `baseUrl`. */
  readonly callPath: string;
  credentialHeader(credential: string): Readonly<Record<string, string>>;
  /** Required headers of a call. The caller's own take precedence. */
  readonly defaults: Readonly<Record<string, string>>;
  /** The dialect of the provider with these options, if the protocol has dialects. */
  dialect?(options: HttpProviderOptions): ports.ChatDialect;
}

function isBaseUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
}
