import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { ProviderSetting } from "./proxy-app.ts";

/** A model proxy in its own process, so that its memory and its lifetime can be measured alone. */
export interface ProxyProcess extends AsyncDisposable {
  /** `http://127.0.0.1:PORT/v1`. */
  readonly url: string;
  /** A safe token by provider id. */
  readonly tokens: Readonly<Record<string, string>>;
  /** Right after a garbage collection. */
  memory(): Promise<ProcessMemory>;
  /** Ends it and resolves with its exit code. */
  close(): Promise<number | null>;
}

/** In bytes. */
export interface ProcessMemory {
  readonly heap: number;
  readonly resident: number;
  /** The most it ever was. */
  readonly peakResident: number;
}

export type ToProxyProcess =
  | { readonly type: "start"; readonly providers: readonly ProviderSetting[] }
  | { readonly type: "memory" | "close" };
export type FromProxyProcess =
  | { readonly type: "ready"; readonly url: string; readonly tokens: Readonly<Record<string, string>> }
  | ({ readonly type: "memory" } & ProcessMemory);

/** Start it. Of each provider the upstream's address counts; the upstream itself stays where it is. */
export async function startProxyProcess(providers: readonly ProviderSetting[]): Promise<ProxyProcess> {
  const child = fork(new URL("./proxy-process-child.ts", import.meta.url), {
    execArgv: ["--expose-gc"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const exited = once(child, "exit") as Promise<[number | null]>;
  const plain = providers.map((each) =>
    each.protocol === "demo" ? each : { ...each, upstream: { baseUrl: each.upstream.baseUrl } },
  );
  const ready = await ask(child, { type: "start", providers: plain }, "ready");
  const close = async () => {
    if (child.connected) child.send({ type: "close" } satisfies ToProxyProcess);
    const [code] = await exited;
    return code;
  };
  return {
    url: ready.url,
    tokens: ready.tokens,
    memory: () => ask(child, { type: "memory" }, "memory"),
    close,
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

function ask<T extends FromProxyProcess["type"]>(
  child: ChildProcess,
  question: ToProxyProcess,
  answer: T,
): Promise<FromProxyProcess & { type: T }> {
  const { promise, resolve, reject } = Promise.withResolvers<FromProxyProcess & { type: T }>();
  const onMessage = (message: FromProxyProcess) => {
    if (message.type !== answer) return;
    child.off("exit", onExit);
    resolve(message as FromProxyProcess & { type: T });
  };
  const onExit = (code: number | null) => reject(new Error(`The proxy's process ended with ${code} in place of an answer`));
  child.once("message", onMessage);
  child.once("exit", onExit);
  child.send(question);
  return promise;
}
