"""Files of data: readers and writers of npy, npz, csv, json and safetensors."""
