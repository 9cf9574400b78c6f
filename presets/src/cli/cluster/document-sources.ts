/** Sources of documents of a cluster, and the names of those documents that its areas use. */
export const DOCUMENT_SOURCES = {
  agents: /^[^/]+\/agent\.json$/,
  workflows: /^(?:[^/]+\/){0,3}[^/]+\.(?:json|ya?ml)$/,
} as const;

/** `agents` or `workflows`. */
export type DocumentSource = keyof typeof DOCUMENT_SOURCES;
