import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { createApp, defineAdapter, definePort, type Port, ports } from "@portico/core";
import { type Catalogue, openCatalogue } from "@portico/plugins/workflow-service/open-catalogue";
import { DEFINITION_DEPTH } from "../../platform/workflow-service.ts";
import type { PlatformSettings } from "../../settings/platform.ts";
import { DEFAULT_PRESET } from "../preset-table.ts";
import { ruleAdapters, type ServiceKind, toNodeRules } from "./node-rules.ts";

/** What stands in the folder of definitions. */
export interface Definitions {
  /** Ids of those that can be used. */
  readonly deployed: readonly string[];
  readonly broken: ReturnType<Catalogue["broken"]>;
}

/** What is broken is told by whoever asked. */
const SILENT = { info() {}, warn() {} };

const definitions: Port<Catalogue> = definePort<Catalogue>("cli/definitions");

const openDefinitions = defineAdapter({
  name: "cli/definitions",
  port: definitions,
  needs: { documents: ports.documents, nodes: ports.workflowNodes },
  async open({ documents, nodes }, service: ServiceKind, scope): Promise<Catalogue> {
    const rules = toNodeRules(nodes, service);
    return openCatalogue({ documents: documents[0]!, ...rules, log: SILENT }, scope);
  },
});

/** Read them as the service does. Throws DocumentsUnavailable. */
export async function readDefinitions(settings: PlatformSettings): Promise<Definitions> {
  const { definitionsDir: dir } = settings.workflow;
  const service = { settings, preset: DEFAULT_PRESET };
  const app = await createApp({
    name: "definitions",
    adapters: [
      ...(await ruleAdapters(service)),
      unstorageDocuments({ id: "workflows", dir, depth: DEFINITION_DEPTH }),
      openDefinitions(service),
    ],
  });
  try {
    const catalogue = app.port(definitions);
    return { deployed: catalogue.list().map(({ id }) => id), broken: catalogue.broken() };
  } finally {
    await app.close();
  }
}
