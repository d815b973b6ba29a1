/** Files in /dev of accelerators that NVIDIA's driver does not list, as patterns for sh. It makes render nodes (dri) itself. */
export const OTHER_ACCELERATORS = ['kfd', 'accel*', 'dxg', 'nvhost*', 'nvgpu*', 'davinci[0-9]*', 'hl[0-9]*']
