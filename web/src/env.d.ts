declare module "*.vue" {
  import type { DefineComponent } from "vue";

  const component: DefineComponent<object, object, unknown>;
  export default component;
}

/** The address of the script that draws diagrams, set by the build. */
declare const __DIAGRAM_SCRIPT__: string;
