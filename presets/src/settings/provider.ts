import { providerSchema } from "@portico/adapters/models/http-options";
import * as v from "valibot";

/** The providers of an instance (open points 1 and 2). */
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
