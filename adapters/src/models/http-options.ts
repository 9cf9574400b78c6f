import type { Readable } from "node:stream";
import { headerSecret, jsonObject, type Live, milliseconds, type ports, record, type Secret, settingName } from "@portico/core";
import * as v from "valibot";
import { aiSdkSettings } from "./ai-sdk-settings.ts";
import { cloudSettings } from "./cloud-settings.ts";
import type { OutboundOptions } from "../outbound/outbound-options.ts";
import type { CredentialSource } from "./http/credentials.ts";
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

/** Keys of a dialect of Chat Completions. */
const CHAT_KEYS = {
  maxTokens: v.optional(
    v.pipe(
      v.union([v.picklist(["max_completion_tokens", "max_tokens"]), v.pipe(v.number(), v.integer(), v.minValue(1))]),
      v.description(
        "Chat Completions: the field for the maximum answer length. Messages: the maximum answer length itself. The default of all dialect keys is what the vendor and the model are known to accept.",
      ),
    ),
  ),
  reasoning: v.optional(v.pipe(v.picklist(["effort", "none"]), v.description("`none` sends no `reasoning_effort`."))),
  effortWithTools: v.optional(
    v.pipe(
      v.picklist(["any", "absent", "none"]),
      v.description("A request with tools: `absent` sends no `reasoning_effort`, `none` sends the effort `none`."),
    ),
  ),
  cacheMarks: v.optional(v.pipe(v.boolean(), v.description("Whether `cache_control` is sent on parts of the content."))),
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
      v.description(
        "`strict`: one system message at the head, and messages of user and assistant that alternate, the user's first.",
      ),
    ),
  ),
  contentOfCalls: v.optional(
    v.pipe(v.picklist(["null", "empty"]), v.description("`empty`: messages that only call tools have an empty text.")),
  ),
  userAfterTool: v.optional(v.pipe(v.boolean(), v.description("Whether a user's message may follow a tool's."))),
  toolIds: v.optional(
    v.pipe(v.picklist(["any", "nine"]), v.description("`nine`: ids of tool calls are nine letters and digits.")),
  ),
  thoughtSignatures: v.optional(
    v.pipe(v.boolean(), v.description("Whether tool calls need Google's thought signatures, in `extra_content`.")),
  ),
  user: v.optional(v.pipe(v.boolean(), v.description("Whether `user` is sent, which names the end user."))),
  stop: v.optional(v.pipe(v.boolean(), v.description("Whether `stop` is sent. If not, answers are ended here."))),
  toolChoice: v.optional(
    v.pipe(v.picklist(["any", "words"]), v.description("`words`: in place of a forced tool's name, this tool alone is sent.")),
  ),
  toolSchemas: v.optional(
    v.pipe(
      v.picklist(["any", "typed", "google"]),
      v.description("The form of tools' schemas. `typed`: each branch of a choice has its type. `google`: what Gemini takes."),
    ),
  ),
  answerSchema: v.optional(
    v.pipe(v.boolean(), v.description("Whether a JSON Schema of the answer is sent. If not, the instructions describe it.")),
  ),
  thinkingSwitch: v.optional(
    v.pipe(v.picklist(["none", "thinking", "enable_thinking"]), v.description("The member that turns thinking off.")),
  ),
} as const;

/** Keys of a dialect of Messages. */
const MESSAGES_KEYS = {
  thinking: v.optional(
    v.pipe(
      v.picklist(["adaptive", "budget", "none"]),
      v.description("`adaptive`: thinking by effort. `budget`: by a number of tokens. `none`: none is sent."),
    ),
  ),
} as const;

/** What a provider or one of its models accepts, if it differs from what is known (open points 12). */
const dialectSchema = v.strictObject({
  ...CHAT_KEYS,
  ...MESSAGES_KEYS,
  prefill: v.optional(v.pipe(v.boolean(), v.description("Whether a request may end with the beginning of the answer."))),
  sampling: v.optional(
    v.pipe(
      v.union([v.boolean(), v.picklist(["both", "one", "none"])]),
      v.description(
        "Chat Completions: whether `temperature` and `top_p` are sent. Messages: `both`, `one` of them, or `none` of them and no `top_k`.",
      ),
    ),
  ),
});

/** A dialect, after parsing. */
export type DialectSettings = v.InferOutput<typeof dialectSchema>;

/** A key of a dialect with a value that the protocol does not have. Undefined if all keys belong to it. */
export function foreignDialectKey(protocol: ports.ModelProtocol, dialect: DialectSettings): keyof DialectSettings | undefined {
  const isMessages = protocol === "messages";
  const { maxTokens, sampling, prefill: _shared, ...others } = dialect;
  if (maxTokens !== undefined && (typeof maxTokens === "number") !== isMessages) return "maxTokens";
  if (sampling !== undefined && (typeof sampling === "string") !== isMessages) return "sampling";
  const foreign = isMessages ? CHAT_KEYS : MESSAGES_KEYS;
  return (Object.keys(others) as (keyof typeof others)[]).find((key) => others[key] !== undefined && key in foreign);
}

const modelName = () => v.pipe(v.string(), v.nonEmpty());
const price = () => v.pipe(v.number(), v.minValue(0), v.finite());

/** Headers of a provider. A header may be a credential, so each value may be a secret, and no value is shown. */
const headersSchema = () => record(v.pipe(v.string(), v.regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "a header name")), headerSecret());

/** One served model with settings of its own. */
const modelSchema = v.strictObject({
  id: v.pipe(modelName(), v.description("The name by which callers know the model.")),
  upstream: v.optional(v.pipe(modelName(), v.description("The name that is sent to the upstream. Default: the id."))),
  aliases: v.optional(v.pipe(v.array(modelName()), v.description("Further names by which callers know the model."))),
  dialect: v.optional(dialectSchema),
  context: v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(1), v.description("Tokens of a request with its answer, for agents.")),
  ),
  images: v.optional(
    v.pipe(v.boolean(), v.description("Whether the model reads images and files. `false`: notes are sent in place of them.")),
  ),
  prices: v.optional(
    v.strictObject({
      input: v.pipe(price(), v.description("Price of a million input tokens, in the currency of `prices`.")),
      output: v.pipe(price(), v.description("Price of a million output tokens.")),
      cachedInput: v.optional(
        v.pipe(price(), v.description("Price of a million input tokens from the cache. Default: `input`.")),
      ),
      cacheWrite: v.optional(v.pipe(price(), v.description("Price of a million input tokens into the cache. Default: `input`."))),
    }),
  ),
  parameters: v.optional(
    v.strictObject({
      defaults: v.optional(
        v.pipe(jsonObject, v.description("Members that a request to the upstream gets if it does not have them.")),
      ),
      fixed: v.optional(
        v.pipe(jsonObject, v.description("Members that each request to the upstream gets. Null: the member is never sent.")),
      ),
    }),
  ),
  headers: v.optional(v.pipe(headersSchema(), v.description("Headers that are added to every call of this model."))),
});

/** One upstream (open points 1 and 2). It speaks one protocol. */
export const providerSchema = v.strictObject({
  id: v.pipe(settingName(), v.description("Id of the provider. Safe tokens are bound to it.")),
  type: v.optional(
    v.pipe(v.string(), v.nonEmpty(), v.description("The value of `owned_by` in the list of models. Default: the id.")),
  ),
  protocol: v.pipe(
    v.picklist(["messages", "chat-completions", "responses", "bedrock", "vertex", "azure", "ai-sdk"]),
    v.description(
      "The wire format that the upstream speaks. `responses`: OpenAI's Responses API. `bedrock` and `vertex`: Messages models in Amazon Bedrock and Google Vertex AI. `azure`: Chat Completions of a resource in Azure. `ai-sdk`: a provider package of the AI SDK calls the upstream.",
    ),
  ),
  baseUrl: v.optional(
    v.pipe(
      v.string(),
      v.check(isBaseUrl, "an http or https address without user name, query and fragment"),
      v.description(
        "The part of the upstream's URLs before `/messages`, `/chat/completions`, `/responses` and `/models`. `azure`: the address of the resource. `bedrock` and `vertex` have a default, by their region.",
      ),
    ),
  ),
  ...cloudSettings,
  ...aiSdkSettings,
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
      v.union([v.array(v.union([modelName(), modelSchema])), v.literal("discover")]),
      v.description("The served models: names, or objects with settings. Or `discover` to read the upstream's own list."),
    ),
    "discover",
  ),
  enabled: v.optional(v.pipe(v.boolean(), v.description("A provider that is not enabled is ignored.")), true),
  headers: v.optional(v.pipe(headersSchema(), v.description("Headers that are added to every call to the upstream.")), {}),
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

/** Settings of one model. Its headers are revealed. */
export interface ModelSettings extends Omit<v.InferOutput<typeof modelSchema>, "headers"> {
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The names of models and their aliases, each once. */
export function modelNames(models: readonly (string | Pick<ModelSettings, "id" | "aliases">)[]): readonly string[] {
  return [...new Set(models.flatMap((model) => (typeof model === "string" ? [model] : [model.id, ...(model.aliases ?? [])])))];
}

/** One provider behind HTTP. */
export interface HttpProviderOptions
  extends Pick<ProviderSettings, "id" | "dialect">, Partial<Pick<ProviderLimits, "keyRestMs" | "retry" | "concurrency">> {
  /** The part of the upstream's URLs before the path of a call. */
  readonly baseUrl: string;
  readonly credential?: Secret | CommandCredential | undefined;
  /** Several keys, used in turn, in place of `credential`. */
  readonly keys?: readonly Secret[] | undefined;
  /** The value of `owned_by`. */
  readonly type: string;
  /** Model names, or models with settings, or `"discover"` to read the upstream's own list. */
  readonly models: readonly (string | ModelSettings)[] | "discover";
  /** Sent with every call. They replace the caller's headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The next credential, keys and headers, while the app is open: for the calls that begin later. Calls in progress finish with those
   * that they began with. Undefined keeps the present ones. A credential of another kind than the present one is ignored. Default: they
   * never change.
   */
  readonly rotation?: Live<Pick<HttpProviderOptions, "credential" | "keys" | "headers"> | undefined> | undefined;
  readonly timeouts?: Partial<ProviderTimeouts> | undefined;
  /** A proxy, and authorities, for the connections to the upstream. Default: direct connections, and the authorities of Node.js. */
  readonly outbound?: OutboundOptions | undefined;
  /** Authenticates the requests, in place of `credential`: with tokens that end, or with a signature of each request. */
  readonly credentials?: ((clock: ports.Clock) => CredentialSource) | undefined;
  /**
   * Sends the calls, in place of connections of undici: for runtimes without sockets, and for hosts with a `fetch` of their own. Then
   * `connectMs` and `outbound` have no effect, and encoded answers arrive decoded.
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
  /** How a call is sent to a service whose addresses or bodies differ from the protocol's. Default: the body as it is, to `callPath`. */
  exchange?(call: ports.ModelCall, post: PostRequest, signal: AbortSignal): Promise<ports.ModelAnswer>;
}

/** Sends one authenticated request of a call. `path` is appended to `baseUrl`, and may have a query. */
export type PostRequest = (
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array | Readable,
) => Promise<ports.ModelAnswer>;

function isBaseUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
}
