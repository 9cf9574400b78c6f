import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ports } from "@portico/core";
import { type Child, startChild } from "./child.ts";
import { modelProxy, startNginx } from "./nginx.ts";
import { pin } from "./pin.ts";
import { type Portico, startPortico } from "./portico.ts";
import { CALL_PATHS, type Kind, requestBody } from "./workload.ts";

/** One way of a call to the upstream. */
export interface Contestant {
  readonly name: string;
  /** `same` and `converting` have targets. The others are there for comparison. */
  readonly role: "straight" | "nginx" | "bare" | "gathered" | "same" | "converting" | "beside";
  readonly origin: string;
  /** The process between caller and upstream; the upstream itself for a direct call. */
  readonly pid: number;
  /** The caller's protocol. */
  readonly protocol: ports.ModelProtocol;
  readonly token: string;
}

export interface Field {
  readonly contestants: readonly Contestant[];
  readonly upstream: string;
  stop(): Promise<void>;
}

/** A token as long as a real one, for contestants that check none. */
const ANY_TOKEN = `service_${"x".repeat(43)}`;

/**
 * Starts the upstream and all contestants. `dir` receives their files, `log` their standard error. `beside` is the folder of another
 * checkout: its proxy takes part, so that one run compares two versions.
 */
export async function startField(dir: string, log: number, beside?: string): Promise<Field> {
  const upstream = await startScript("./upstream.ts", [], log);
  pin("load", upstream.pid);
  const bare = await startScript("./bare.ts", [upstream.origin, "piped"], log);
  const gathered = await startScript("./bare.ts", [upstream.origin, "gathered"], log);
  const nginx = await startNginx(dir, modelProxy(upstream.origin));
  if (!nginx) console.log("nginx is not installed: left out");
  const portico = await startPortico(madeIn(dir, "portico"), upstream.origin, log);

  const unchecked = { protocol: "messages", token: ANY_TOKEN } as const;
  const other = beside === undefined ? undefined : await startPortico(madeIn(dir, "beside"), upstream.origin, log, beside);
  pin("contestant", ...[bare, gathered, nginx, portico, other].flatMap((each) => (each ? [each.pid] : [])));
  return {
    upstream: upstream.origin,
    contestants: [
      { name: "straight", role: "straight", origin: upstream.origin, pid: upstream.pid, ...unchecked },
      ...(nginx ? [{ name: "nginx", role: "nginx", origin: nginx.origin, pid: nginx.pid, ...unchecked } as const] : []),
      { name: "bare node:http + undici", role: "bare", origin: bare.origin, pid: bare.pid, ...unchecked },
      { name: "bare, bodies gathered", role: "gathered", origin: gathered.origin, pid: gathered.pid, ...unchecked },
      ...callsOf(portico, "portico", "same", "converting"),
      ...(other ? callsOf(other, "beside", "beside", "beside") : []),
    ],
    async stop() {
      await portico.stop();
      await other?.stop();
      await nginx?.stop();
      await bare.stop();
      await gathered.stop();
      await upstream.stop();
    },
  };
}

/** The contestants of one proxy. */
function callsOf(
  { origin, pid, tokens }: Portico,
  name: string,
  same: Contestant["role"],
  converting: Contestant["role"],
): readonly Contestant[] {
  const chat = tokens["chat-completions"];
  return [
    { name: `${name}, same protocol`, role: same, origin, pid, protocol: "messages", token: tokens.messages },
    { name: `${name}, messages to chat`, role: converting, origin, pid, protocol: "messages", token: chat },
    { name: `${name}, chat to messages`, role: converting, origin, pid, protocol: "chat-completions", token: tokens.messages },
  ];
}

function madeIn(dir: string, name: string): string {
  const made = join(dir, name);
  mkdirSync(made);
  return made;
}

/** The head of a request with a body of this many bytes, as a client library would send it. */
export function requestHead(
  { origin, protocol, token }: Pick<Contestant, "origin" | "protocol" | "token">,
  bytes: number,
): string {
  return [
    `POST ${CALL_PATHS[protocol]} HTTP/1.1`,
    `host: ${new URL(origin).host}`,
    "user-agent: portico-bench/1",
    "accept: application/json",
    "content-type: application/json",
    "anthropic-version: 2023-06-01",
    `authorization: Bearer ${token}`,
    `content-length: ${bytes}`,
    "\r\n",
  ].join("\r\n");
}

/** A whole request of an everyday call. */
export function requestText(contestant: Contestant, kind: Kind): string {
  const body = requestBody(contestant.protocol, kind);
  return requestHead(contestant, Buffer.byteLength(body)) + body;
}

async function startScript(file: string, args: readonly string[], log: number): Promise<Child & { readonly origin: string }> {
  const child = await startChild(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], log);
  return { ...child, origin: (child.ready as { origin: string }).origin };
}
