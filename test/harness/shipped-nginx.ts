import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../rooms/repository.ts";
import { freePort } from "./ports.ts";

const FOLDER = join(root, "deploy/container/nginx");

/** Where the containers of a compose file are in a test. */
export interface ShippedNginxOptions {
  readonly agents: readonly string[];
  readonly workflows: readonly string[];
  /** The volume `files`. */
  readonly filesDir?: string;
  /** A name server that knows `portico-1` and so on, as Docker's does. Default: without one, for versions of nginx that have no `resolve`. */
  readonly resolver?: string | undefined;
  /** Names of the two servers. Default: `agents.example` and `workflows.example`. */
  readonly names?: { readonly agent: string; readonly workflow: string };
}

const NAMES = { agent: "agents.example", workflow: "workflows.example" };

/**
 * The configuration that the containers of nginx in `deploy/container` load, for `startNginx`: as their image writes it, with the addresses
 * of a test.
 */
export async function shippedNginx({
  agents,
  workflows,
  filesDir = "/nowhere",
  names = NAMES,
  resolver,
}: ShippedNginxOptions): Promise<string> {
  const kind = agents.length > 1 ? "cluster" : "local";
  const shipped = readFileSync(join(FOLDER, `upstreams-${kind}.conf`), "utf8");
  const upstreams = (
    resolver === undefined ? shipped : shipped.replace("127.0.0.11 valid=10s", `${resolver} valid=1s`)
  ).replaceAll(/server (portico(?:-(\d))?):(\d+) resolve;/g, (_line, name, member = "1", port) => {
    const { host, port: placed } = new URL((port === "49154" ? agents : workflows)[Number(member) - 1]!);
    // Versions before 1.27.3 do not have `resolve`.
    return resolver === undefined ? `server ${host};` : `server ${name}:${placed} resolve;`;
  });
  const plain = await freePort();
  const servers = readFileSync(join(FOLDER, "servers.conf.template"), "utf8")
    .replaceAll("${AGENT_HOST}", names.agent)
    .replaceAll("${WORKFLOW_HOST}", names.workflow)
    .replaceAll("listen 8443 ssl", "listen 443 ssl")
    .replace("listen 8080", `listen 127.0.0.1:${plain}`)
    .replaceAll("/var/lib/portico/files", filesDir);
  return `${upstreams}\n${servers}`;
}
