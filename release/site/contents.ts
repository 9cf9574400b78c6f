import { readFile } from "node:fs/promises";
import { join } from "node:path";

/** A part of the table of contents. */
interface Part {
  readonly title: string;
  /** Files of the repository, or parts of the part. A file whose heading does not fit into the list has another title here. */
  readonly items: readonly (string | readonly [file: string, title: string] | Part)[];
}

/** The table of contents, as a path: a reader who begins needs the first parts, and looks into the last ones. */
export const CONTENTS: readonly Part[] = [
  {
    title: "Start",
    items: [
      ["README.md", "What Portico is"],
      "docs/installation.md",
      "docs/tutorial-first-agent.md",
      ["docs/guides/ask-a-person.md", "First workflow"],
      ["docs/guides/your-tools.md", "Your tools and the proxy"],
      "docs/coming-from.md",
      "docs/questions.md",
    ],
  },
  { title: "Concepts", items: ["docs/concepts.md"] },
  {
    title: "Guides",
    items: [
      {
        title: "Models",
        items: [
          "docs/guides/which-provider.md",
          "docs/guides/model-names.md",
          "docs/guides/cloud-providers.md",
          "docs/guides/coding-tools.md",
        ],
      },
      {
        title: "Agents",
        items: [
          "docs/guides/agent-in-production.md",
          "docs/guides/agents-as-models.md",
          "docs/guides/mcp-server.md",
          "docs/agent-memory.md",
          "docs/agent-tests.md",
          "docs/approvals.md",
          "docs/schedules.md",
          ["docs/areas/agent-webhook-senders.md", "GitHub, Slack, Stripe and others"],
        ],
      },
      {
        title: "Workflows",
        items: ["docs/workflow-definitions.md", "docs/workflow-tests.md", ["playground/workflows/README.md", "Examples to copy"]],
      },
      { title: "Users", items: ["docs/guides/several-users.md", "docs/guides/single-sign-on.md"] },
      {
        title: "Programs",
        items: [
          "docs/client.md",
          "docs/embedding.md",
          "docs/guides/web-frameworks.md",
          "docs/guides/test-a-host.md",
          "docs/guides/calls-from-web-pages.md",
        ],
      },
    ],
  },
  {
    title: "Areas",
    items: [
      "docs/areas/model-proxy.md",
      "docs/areas/model-conversion.md",
      "docs/areas/conversations-runs.md",
      "docs/areas/agent-webhook.md",
      "docs/areas/attachments-media.md",
      "docs/areas/workflow-service.md",
      "docs/console.md",
    ],
  },
  {
    title: "Operate",
    items: [
      ["docs/runbook.md", "Runbook for 3 a.m."],
      "docs/operations.md",
      "docs/configuration.md",
      {
        title: "Deploy",
        items: [
          ["docs/deploy/README.md", "Choose"],
          "docs/deploy/container.md",
          "docs/deploy/systemd.md",
          "docs/deploy/kubernetes.md",
          "docs/deploy/behind-a-proxy.md",
          "docs/guides/behind-nginx.md",
          "docs/guides/windows.md",
        ],
      },
      {
        title: "Clusters",
        items: [
          ["docs/cluster.md", "The preset cluster"],
          "docs/cluster-operations.md",
          ["playground/cluster/README.md", "Try one"],
        ],
      },
      "docs/security.md",
      ["SECURITY.md", "Report a vulnerability"],
      "docs/observability.md",
      ["deploy/monitoring/README.md", "Alerts and dashboards"],
      "docs/usage.md",
      "docs/notifications.md",
      "docs/sizing.md",
      "docs/performance.md",
      "docs/troubleshooting.md",
    ],
  },
  {
    title: "Extend",
    items: [
      "docs/architecture.md",
      "docs/writing-a-plugin.md",
      "docs/writing-an-adapter.md",
      "docs/own-model-provider.md",
      "docs/another-store.md",
      "docs/writing-a-preset.md",
      "docs/runtimes.md",
      ["docs/service-pages.md", "Pages of a service"],
      {
        title: "Decisions",
        items: [
          ["docs/decisions/README.md", "All decisions"],
          ...["libraries", "console-libraries", "http-answers", "ports-and-records"].map((name) => `docs/decisions/${name}.md`),
        ],
      },
      "CONTRIBUTING.md",
      "docs/releasing.md",
    ],
  },
  {
    title: "Reference",
    items: [
      ["docs/reference/README.md", "All pages"],
      ...["agent-service", "workflow-service", "model-proxy", "events", "configuration", "command-line", "agent-file"].map(
        (name) => `docs/reference/${name}.md`,
      ),
      ...["workflow-definition", "workflow-nodes", "exit-codes", "log-lines", "metrics", "ports", "reasons", "audit-actions"].map(
        (name) => `docs/reference/${name}.md`,
      ),
      ["docs/api.md", "API"],
      "docs/websocket-protocol.md",
      "docs/workflow-functions.md",
      "docs/vendors.md",
      {
        title: "Ports",
        items: [
          ["docs/ports/README.md", "All ports"],
          ...[
            ...["agent-engines", "agents", "areas", "audit", "background-turns", "blobs", "bus", "clock", "documents", "engine"],
            ...[
              "identity",
              "ids",
              "log",
              "models",
              "node-paths",
              "notifications",
              "presence",
              "readiness",
              "realtime",
              "records",
              "schedules",
            ],
            ...[
              "sealing",
              "secrets",
              "signing",
              "telemetry",
              "tools",
              "usage",
              "user-files",
              "websocket-paths",
              "workflow-nodes",
            ],
          ].map((port) => `docs/ports/${port}.md`),
        ],
      },
      {
        title: "Packages",
        items: [
          ...["core", "adapters", "adapters/clouds", "adapters/cluster", "adapters/workflow-nodes", "plugins", "plugins/mcp"],
          ...["plugins/operator", "client", "console", "presets", "presets/cli", "test"],
        ].map((folder) => `${folder}/README.md`),
      },
    ],
  },
  { title: "Compare", items: ["docs/comparison.md"] },
];

/** The files of the site, in the order of its contents. */
export function pagesOf(parts: readonly Part[] = CONTENTS): string[] {
  return parts.flatMap(({ items }) =>
    items.flatMap((item) => (typeof item === "string" ? [item] : "items" in item ? pagesOf([item]) : [item[0]])),
  );
}

interface SidebarItem {
  text: string;
  link?: string;
  items?: SidebarItem[];
  collapsed?: boolean;
}

/** The contents as VitePress's sidebar, with the headings of the files in `root`. */
export function sidebarOf(root: string, parts: readonly Part[] = CONTENTS, depth = 0): Promise<SidebarItem[]> {
  return Promise.all(
    parts.map(async ({ title, items }) => ({
      text: title,
      collapsed: depth > 0 || !["Start", "Concepts"].includes(title),
      items: await Promise.all(
        items.map(async (item) => {
          if (typeof item !== "string" && "items" in item) return (await sidebarOf(root, [item], depth + 1))[0]!;
          const [file, own] = typeof item === "string" ? [item, undefined] : item;
          return { text: own ?? (await headingOf(join(root, file))), link: `/${sitePath(file)}` };
        }),
      ),
    })),
  );
}

/** Where a file of the repository stands on the site: `docs/deploy/README.md` is `deploy/index.md`. */
export function sitePath(file: string): string {
  // Some file systems do not tell it from `docs/security.md`.
  if (file === "SECURITY.md") return "report-a-vulnerability.md";
  return file.replace(/^docs\//, "").replace(/(^|\/)README\.md$/, "$1index.md");
}

async function headingOf(path: string): Promise<string> {
  const [, heading] = /^# (.+)$/m.exec(await readFile(path, "utf8")) ?? [];
  if (heading === undefined) throw new Error(`${path} has no heading`);
  return heading.replaceAll("`", "");
}
