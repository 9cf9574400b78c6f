// A custom model provider: a gateway that takes no key. It takes tokens that come from a sign-in and expire.
import { systemClock } from "@portico/adapters/clock/system";
import { chatHttp } from "@portico/adapters/models/chat-http";
import { Readable } from "node:stream";
import { type App, createApp, defineAdapter, orAborted, ports, Secret } from "@portico/core";
import { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import { listen } from "./listen.ts";

export interface GatewayOptions extends Omit<Parameters<typeof chatHttp>[0], "credential" | "models"> {
  readonly models: readonly string[];
  /** Returns a new token and its lifetime. Calls that wait at the same time share one token. */
  signIn(signal: AbortSignal): Promise<{ readonly token: Secret; readonly expiresInMs: number }>;
}

/** Chat Completions over HTTP, with a token that is renewed before it expires. */
export const gateway = defineAdapter({
  name: "models/gateway",
  port: ports.models,
  needs: { clock: ports.clock },
  async open(given, { signIn, ...options }: GatewayOptions, scope): Promise<ports.ModelProvider> {
    const inner = await chatHttp(options).spec.open(given, options, scope);
    const closing = new AbortController();
    scope.onClose(() => closing.abort());
    /** The last two tokens. Answers to calls with the older token may still arrive, and must be redacted, too. */
    let tokens: readonly { readonly secret: Secret; readonly until: number }[] = [];
    let signingIn: Promise<Secret> | undefined;

    const renew = async () => {
      try {
        const { token: secret, expiresInMs } = await signIn(closing.signal);
        tokens = [{ secret, until: given.clock.now() + expiresInMs - EARLY_MS }, ...tokens.slice(0, 1)];
        return secret;
      } catch (cause) {
        throw new ports.ModelUnreachable(`Provider "${options.id}" cannot be signed in to`, { cause });
      } finally {
        signingIn = undefined;
      }
    };
    const currentToken = async (signal: AbortSignal) => {
      signal.throwIfAborted();
      const [latest] = tokens;
      if (latest && given.clock.now() < latest.until) return latest.secret;
      // If one caller aborts, the sign-in continues for the other callers.
      return orAborted((signingIn ??= renew()), signal);
    };

    return {
      ...inner,
      async send(call, signal) {
        try {
          const token = await currentToken(signal);
          const headers = { ...call.headers, authorization: `Bearer ${token.reveal()}` };
          return await inner.send({ ...call, headers }, signal);
        } catch (error) {
          // The caller's stream is closed after every failure.
          if (call.body instanceof Readable) call.body.destroy();
          throw error;
        }
      },
      redact: (text) => tokens.reduce((shown, { secret }) => shown.replaceAll(secret.reveal(), "***"), inner.redact(text)),
    };
  },
});

/** A token is renewed shortly before it expires, because it must stay valid during the call. */
const EARLY_MS = 10_000;

/** An app that has only this provider. */
export function start(options: GatewayOptions): Promise<App> {
  return createApp({ name: "through-a-gateway", adapters: [systemClock(), gateway(options)] });
}

if (import.meta.main) {
  const standIn = new H3()
    .post("/token", () => ({ access_token: "a-token-for-this-hour", expires_in: 3600 }))
    .post("/v1/chat/completions", ({ req }) => ({
      choices: [{ message: { role: "assistant", content: `Called with ${req.headers.get("authorization")}` } }],
    }));
  await using gatewayServer = await listen(toNodeHandler(standIn));
  await using app = await start({
    id: "house",
    type: "gateway",
    baseUrl: `${gatewayServer.url}/v1`,
    models: ["house-model"],
    async signIn(signal) {
      const answer = await fetch(`${gatewayServer.url}/token`, { method: "POST", signal });
      const { access_token, expires_in } = (await answer.json()) as { access_token: string; expires_in: number };
      return { token: new Secret(access_token), expiresInMs: expires_in * 1000 };
    },
  });
  const [provider] = app.port(ports.models);
  const question = { model: "house-model", messages: [{ role: "user", content: "Hello" }] };
  const call = { headers: { "content-type": "application/json" }, query: "", body: Buffer.from(JSON.stringify(question)) };
  const answer = await provider!.send(call, new AbortController().signal);
  const { choices } = (await new Response(Readable.toWeb(answer.body) as ReadableStream).json()) as {
    choices: { message: { content: string } }[];
  };
  console.log(`${answer.status}: ${choices[0]?.message.content}`);
  console.log(provider!.redact(choices[0]!.message.content));
}
