import { ports } from "@portico/core";
import type { PlatformSettings } from "../../settings/platform.ts";
import { readDefinitions } from "../workflows/read-definitions.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "workflows";

/** Whether every definition can be used, and every binding binds one. */
export async function checkWorkflows(settings: PlatformSettings): Promise<readonly Finding[]> {
  const { definitionsDir, bindings } = settings.workflow;
  let deployed: readonly string[];
  let broken: Awaited<ReturnType<typeof readDefinitions>>["broken"];
  try {
    ({ deployed, broken } = await readDefinitions(settings));
  } catch (error) {
    if (!(error instanceof ports.DocumentsUnavailable)) throw error;
    return [wrong(ABOUT, `the definitions in ${definitionsDir} cannot be read`, "give this user the right to read that folder")];
  }
  const problems = broken.map(({ name, problems: all }) => {
    const places = all.map(({ line, column, message }) => `${line}:${column}: ${message}`).join("; ");
    return wrong(`workflow definition ${name}`, places, `correct it; portico workflow check tells the same while you do`);
  });
  const unbound = bindings
    .filter(({ workflowId }) => !deployed.includes(workflowId))
    .map(({ id, workflowId }) =>
      wrong(
        `binding ${id}`,
        `no usable definition has the id "${workflowId}"`,
        `correct its "workflowId", or deploy the definition in ${definitionsDir}`,
      ),
    );
  if (problems.length > 0 || unbound.length > 0) return [...problems, ...unbound];
  if (deployed.length === 0) return [fine(ABOUT, `no definitions in ${definitionsDir}`)];
  return [fine(ABOUT, `${deployed.length === 1 ? "1 definition is" : `all ${deployed.length} definitions are`} fine`)];
}
