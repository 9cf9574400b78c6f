import { parse } from "yaml";
import { readText } from "../rooms/repository.ts";

/** Where the files for containers are. */
export const CONTAINER_FOLDER = "deploy/container";

/** The files for Compose, in that folder. */
export const COMPOSE_FILES = ["compose.yaml", "compose.cluster.yaml"];

const HOSTS = { AGENT_HOST: "agents.example", WORKFLOW_HOST: "workflows.example" };

/** As Compose reads it: with merged aliases and interpolated variables. */
export async function compose(name: string): Promise<any> {
  const text = (await readText(`${CONTAINER_FOLDER}/${name}`))
    .replaceAll(/\$\{(\w+):\?\}/g, (_all, key) => HOSTS[key as keyof typeof HOSTS] ?? `no default for ${key}`)
    .replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1");
  return parse(text, { merge: true });
}
