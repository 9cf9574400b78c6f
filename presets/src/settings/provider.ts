import { headerSecret, keySecret, milliseconds, record, settingName } from "@portico/core";
import * as v from "valibot";

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
  credential: v.optional(v.pipe(keySecret(), v.description("The upstream's key. Never leaves the service."))),
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
      connectMs: v.optional(v.pipe(milliseconds(1), v.description("Timeout for opening a connection.")), 10_000),
      headersMs: v.optional(v.pipe(milliseconds(1), v.description("Timeout for the head of an answer.")), 600_000),
      idleMs: v.optional(v.pipe(milliseconds(1), v.description("Timeout for silence inside an answer.")), 300_000),
    }),
    {},
  ),
  dialect: v.optional(dialectSchema),
});

export const providersSchema = v.pipe(
  v.array(providerSchema),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    for (const [index, provider] of dataset.value.entries()) {
      const refuse = (key: "id" | "dialect", message: string) =>
        addIssue({
          message,
          input: provider[key],
          path: [
            { type: "array", origin: "value", input: dataset.value, key: index, value: provider },
            { type: "object", origin: "value", input: { ...provider }, key, value: provider[key] },
          ],
        });
      if (dataset.value.findIndex((other) => other.id === provider.id) !== index)
        refuse("id", "an id that no other provider has");
      if (provider.dialect && provider.protocol !== "chat-completions")
        refuse("dialect", 'nothing: only providers of the protocol "chat-completions" have dialects');
    }
  }),
  v.description("Model providers. If the list is empty, `autoProviders` applies."),
);

/** A provider, after parsing. */
export type ProviderSettings = v.InferOutput<typeof providerSchema>;

function isBaseUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
}
