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
  /** Names of the two servers. Default: `agents.example` and `workflows.example`. */
  readonly names?: { readonly agent: string; readonly workflow: string };
}

const NAMES = { agent: "agents.example", workflow: "workflows.example" };

/**
 * What the containers of nginx in `deploy/container` load, for `startNginx`: as their image would write it, with the addresses of a test.
 */
export async function shippedNginx({
  agents,
  workflows,
  filesDir = "/nowhere",
  names = NAMES,
}: ShippedNginxOptions): Promise<string> {
  const kind = agents.length > 1 ? "cluster" : "local";
  const upstreams = readFileSync(join(FOLDER, `upstreams-${kind}.conf`), "utf8")
    // Versions before 1.27 do not have it.
    .replaceAll(" resolve;", ";")
    .replaceAll(/server portico(?:-(\d))?:(\d+);/g, (_line, member = "1", port) => {
      const urls = port === "49154" ? agents : workflows;
      return `server ${new URL(urls[Number(member) - 1]!).host};`;
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
