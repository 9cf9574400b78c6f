import { systemClock } from "@portico/adapters/clock/system";
import { ask } from "@portico/adapters/models/ask";
import { createApp, ports } from "@portico/core";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";
import { printable } from "../terminal.ts";
import { explainRefusal } from "./explain-refusal.ts";
import { doubtful, type Finding, fine, wrong } from "./finding.ts";

/** Longest wait for one call, with the list of models if no model is configured. */
const CALL_MS = 30_000;
const CALLS_AT_ONCE = 4;
/** The least that every vendor accepts. */
const ANSWER_TOKENS = 16;

/** Models with names of this kind answer no chat. A list of models does not say what a model does. */
const NO_CHAT = /embed|rerank|whisper|transcri|tts|speech|audio|realtime|dall-e|image|moderation|guard/i;

/** Returns a function that sends one small call to a model of a provider. At most four calls run at once. */
export function createProviderCalls(): (provider: ServedProvider) => Promise<readonly Finding[]> {
  const lanes: Promise<unknown>[] = Array.from({ length: CALLS_AT_ONCE }, () => Promise.resolve());
  let calls = 0;
  return async (provider) => {
    if (provider.origin === "demo") return [];
    const lane = calls++ % CALLS_AT_ONCE;
    const called = lanes[lane]!.then(() => callProvider(provider));
    lanes[lane] = called.catch(() => {});
    return [await called];
  };
}

async function callProvider(served: ServedProvider): Promise<Finding> {
  const about = `call of provider ${served.id}`;
  const app = await createApp({ name: "doctor", adapters: [systemClock(), served.asking] });
  const signal = AbortSignal.timeout(CALL_MS);
  let model: string | undefined;
  try {
    const [provider] = app.port(ports.models);
    if (!provider) return doubtful(about, "not called: the provider did not open");
    const names = served.models === "discover" ? await provider.listModels(signal) : served.models;
    model = names.find((name) => !NO_CHAT.test(name)) ?? names[0];
    if (model === undefined) return doubtful(about, "not called: it lists no models, and `models` names none");
    await ask(provider, { model, prompt: "Say ok.", maxTokens: ANSWER_TOKENS }, signal);
    return fine(about, `${printable(model)} answers`);
  } catch (error) {
    if (signal.aborted)
      return wrong(
        about,
        `no answer within ${CALL_MS / 1000} s`,
        "try again; a local model may still be loading, and a firewall may drop the connection",
      );
    const { message, fix } = explainRefusal(error, served, model);
    return wrong(about, printable(message), fix);
  } finally {
    await app.close();
  }
}
