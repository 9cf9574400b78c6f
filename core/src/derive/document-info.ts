/** The description of a document itself, in OpenAPI and AsyncAPI alike. */
export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description?: string;
  readonly license?: { readonly name: string; readonly url?: string };
}
