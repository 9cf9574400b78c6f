import { workflowNodesConformance } from "@portico/test/conformance/workflow-nodes";
import { sampleNameNode } from "../src/sample-name-node.ts";

// The rules of the port. `works` succeeds, `broken` is refused by the node's schema, `fails` fails while it runs.
workflowNodesConformance("sample-name", () => ({
  adapter: sampleNameNode({ longest: 20 }),
  works: { text: "tea", times: 2 },
  broken: [{}, { text: 5 }, { text: "tea", times: 0 }],
  fails: { text: "hidden-word", times: 2 },
}));
