import { ports } from "@portico/core";
import { definitionsAt, definitionsInWords, isInDatabase } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { readDefinitions } from "../workflows/read-definitions.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "workflows";

/** Checks that every definition is valid, and that every binding names an existing workflow. */
export async function checkWorkflows(settings: PlatformSettings): Promise<readonly Finding[]> {
  const { bindings } = settings.workflow;
  const words = definitionsInWords(settings);
  let deployed: readonly string[];
  let broken: Awaited<ReturnType<typeof readDefinitions>>["broken"];
  try {
    ({ deployed, broken } = await readDefinitions(settings));
  } catch (error) {
    if (!(error instanceof ports.DocumentsUnavailable)) throw error;
    // Other checks say what is wrong with the database.
    if (isInDatabase(settings)) return [];
    const isFolder = "dir" in definitionsAt(settings.workflow);
    const fix = isFolder ? "give this user read permission for that folder" : "correct workflow.documents, or start that store";
    return [wrong(ABOUT, `the definitions in ${words} cannot be read: ${error.message}`, fix)];
  }
  const problems = broken.map(({ name, problems: all }) => {
    const places = all.map(({ line, column, message }) => `${line}:${column}: ${message}`).join("; ");
    return wrong(`workflow definition ${name}`, places, `correct it; portico workflow check shows the remaining problems`);
  });
  const unbound = bindings
    .filter(({ workflowId }) => !deployed.includes(workflowId))
    .map(({ id, workflowId }) =>
      wrong(
        `binding ${id}`,
        `no usable definition has the id "${workflowId}"`,
        `correct its "workflowId", or deploy the definition in ${words}`,
      ),
    );
  if (problems.length > 0 || unbound.length > 0) return [...problems, ...unbound];
  if (deployed.length === 0) return [fine(ABOUT, `no definitions in ${words}`)];
  return [fine(ABOUT, `${deployed.length === 1 ? "1 definition is" : `all ${deployed.length} definitions are`} valid`)];
}
