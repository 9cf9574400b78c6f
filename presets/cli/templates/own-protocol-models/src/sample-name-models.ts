import { ports, type Secret } from "@portico/core";
import { defineModelProvider, ModelRefusal, readLines } from "@portico/core/model-protocols";
import * as v from "valibot";

export interface SampleNameModelsOptions {
  readonly id: string;
  /** The address of the service, without a path. */
  readonly baseUrl: string;
  readonly credential: Secret;
  readonly models: readonly string[];
}

/** What the service tells in one line of its answer. */
const told = v.union([
  v.object({ text: v.string() }),
  v.object({ call: v.object({ name: v.string(), arguments: v.record(v.string(), v.any()) }) }),
  v.object({ end: v.object({ inputTokens: v.number(), outputTokens: v.number() }) }),
]);

/**
 * A provider whose service has a protocol of its own: one POST, and an answer with one JSON object per line. Replace the body of `answer`
 * by the protocol of your service.
 */
export const sampleNameModels = defineModelProvider({
  name: "models/sample-name",
  open: (_given, { id, baseUrl, credential, models }: SampleNameModelsOptions) => ({
    id,
    models,
    // Requests with anything else beside text are refused: add "images", "documents", "thinking" or "schema" with the code that sends them.
    takes: ["tools"],
    secrets: [credential, baseUrl],
    async *answer({ model, system, turns, tools, maxTokens }, signal) {
      const answer = await fetch(`${baseUrl}/ask`, {
        method: "POST",
        headers: { authorization: `Bearer ${credential.reveal()}` },
        body: JSON.stringify({ model, system, turns, tools, maxTokens }),
        signal,
      });
      if (answer.status !== 200 || !answer.body) {
        const kind = answer.status === 429 ? "rate-limit" : "upstream";
        throw new ModelRefusal(kind, `The service refused: ${(await answer.text()).slice(0, 1_000)}`);
      }
      for await (const line of readLines(answer.body)) {
        const part = v.parse(told, JSON.parse(line));
        if ("text" in part) yield part.text;
        else if ("call" in part) yield { type: "tool-call", ...part.call };
        else {
          yield { type: "usage", usage: { input: part.end.inputTokens, output: part.end.outputTokens } };
          return;
        }
      }
      // An answer is complete only if the service says so.
      throw new ports.ModelUnreachable(`Provider "${id}" ended its answer early`);
    },
  }),
});
