import * as v from "valibot";
import { headerSecret, keySecret, milliseconds, name } from "./scalar.ts";

/** One upstream (open points 1 and 2): bound to one protocol. */
export const providerSchema = v.strictObject({
  id: v.pipe(name(), v.description("Names the provider; safe tokens are bound to it.")),
  type: v.optional(
    v.pipe(v.string(), v.nonEmpty(), v.description("What `owned_by` reports in the list of models; default: the id.")),
  ),
  protocol: v.pipe(v.picklist(["messages", "chat-completions"]), v.description("The wire format that the upstream speaks.")),
  baseUrl: v.pipe(
    v.string(),
    v.check(isBaseUrl, "an http or https address without user name, query and fragment"),
    v.description("Everything before `/messages`, `/chat/completions` and `/models`."),
  ),
  credential: v.optional(v.pipe(keySecret(), v.description("The upstream's key. Never leaves the service."))),
  models: v.optional(
    v.pipe(
      v.union([v.array(v.pipe(v.string(), v.nonEmpty())), v.literal("discover")]),
      v.description("Names of the models it serves, or `discover` to read the upstream's own list."),
    ),
    "discover",
  ),
  enabled: v.optional(v.pipe(v.boolean(), v.description("A provider that is not enabled is as if it were not there.")), true),
  headers: v.optional(
    v.pipe(
      // A header may be a credential, so each may be spelled as a secret and none is shown.
      v.record(v.pipe(v.string(), v.regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "a header name")), headerSecret()),
      v.description("Headers that go with every call to the upstream."),
    ),
    {},
  ),
  timeouts: v.optional(
    v.strictObject({
      connectMs: v.optional(v.pipe(milliseconds(1), v.description("Longest wait for a connection.")), 10_000),
      headersMs: v.optional(v.pipe(milliseconds(1), v.description("Longest wait for the head of an answer.")), 600_000),
      idleMs: v.optional(v.pipe(milliseconds(1), v.description("Longest silence inside an answer.")), 300_000),
    }),
    {},
  ),
});

export const providersSchema = v.pipe(
  v.array(providerSchema),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    for (const [index, { id }] of dataset.value.entries()) {
      if (dataset.value.findIndex((other) => other.id === id) === index) continue;
      addIssue({
        message: "an id that no other provider has",
        input: id,
        path: [
          { type: "array", origin: "value", input: dataset.value, key: index, value: dataset.value[index] },
          { type: "object", origin: "value", input: { ...dataset.value[index] }, key: "id", value: id },
        ],
      });
    }
  }),
  v.description("Upstreams. While there is none, `autoProviders` decides what is served."),
);

/** A provider as its schema read it. */
export type ProviderSettings = v.InferOutput<typeof providerSchema>;

function isBaseUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash;
}
