import { systemClock } from "@portico/adapters/clock/system";
import { createApp, ports } from "@portico/core";
import { chooseProviders, type ServedProvider } from "../../platform/provider-choice.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { type Finding, fine, wrong } from "./finding.ts";

/** Longest wait for a provider's list of models. */
const ANSWER_MS = 10_000;

/** Whether every provider that would be served answers, takes its credential and has the configured models. */
export async function checkProviders(settings: PlatformSettings): Promise<readonly Finding[]> {
  const providers = await chooseProviders(settings, { env: process.env });
  if (providers.length === 0)
    return [wrong("providers", "every configured provider is switched off", 'set "enabled": true for one of them')];
  return (await Promise.all(providers.map(checkProvider))).flat();
}

async function checkProvider(provider: ServedProvider): Promise<readonly Finding[]> {
  const about = `provider ${provider.id}`;
  if (provider.origin === "demo") return [fine(about, "no provider is configured: the offline demo is there to try things")];
  const found = provider.source ? ` (found: ${provider.source})` : "";
  const app = await createApp({ name: "doctor", adapters: [systemClock(), provider.asking] });
  try {
    const [asking] = app.port(ports.models);
    const listed = (await asking?.listModels(AbortSignal.timeout(ANSWER_MS))) ?? [];
    const missing = provider.models === "discover" ? [] : provider.models.filter((model) => !listed.includes(model));
    if (missing.length === 0) return [fine(about, `answers, takes its credential, and lists ${listed.length} models${found}`)];
    return [
      wrong(
        about,
        `answers, but its list of models has no ${missing.join(", ")}${found}`,
        `correct its "models", or set them to "discover"; some upstreams serve models that they do not list`,
      ),
    ];
  } catch (error) {
    return [failure(about, provider, error)];
  } finally {
    await app.close();
  }
}

/** The port's errors hold neither address nor credential. Anything else is not shown. */
function failure(about: string, provider: ServedProvider, error: unknown): Finding {
  const isKnown = error instanceof ports.ModelUnreachable || error instanceof ports.ModelTimeout;
  const message = isKnown ? error.message : `did not answer its list of models within ${ANSWER_MS / 1000} s`;
  // The list is no part of a call: an upstream whose models are configured can do without one.
  if (provider.models !== "discover" && /\b(404|405)\b/.test(message))
    return fine(about, `${message}: its credential was not checked`);
  const isRefused = /\b(401|403)\b/.test(message);
  const where = provider.origin === "found" ? "its environment variable" : "its `credential`";
  return wrong(
    about,
    message,
    isRefused ? `correct the key in ${where}` : "check its `baseUrl`, the network between, and whether it is running",
  );
}
